// SPDX-License-Identifier: Apache-2.0
#include "screen/window.h"

#include <errno.h>
#include <stdlib.h>

#include "screen/page.h"
#include "screen/terminal.h"

struct window {
	struct terminal *terminal;
	struct strbuf page;
	int scroll, rows; /* of the page; which are seen */
};

int window_open(bool colours, struct window **ret_window)
{
	struct window *window = calloc(1, sizeof(*window));
	int r = window ? terminal_open(colours, &window->terminal) : -ENOMEM;

	if (r < 0) {
		free(window);
		return r;
	}
	strbuf_init(&window->page, 0);
	*ret_window = window;
	return 0;
}

void window_close(struct window *window)
{
	if (!window)
		return;
	terminal_close(window->terminal);
	strbuf_done(&window->page);
	free(window);
}

unsigned window_width(struct window *window)
{
	return (unsigned)terminal_canvas(window->terminal)->columns;
}

/* The last row says what is not seen. */
static int show_page(struct window *window, bool whole)
{
	struct canvas *canvas = terminal_canvas(window->terminal);
	int room = canvas->rows, r;

	canvas_clear(canvas);
	r = page_draw(canvas, &window->page, 0, 0);
	if (r < 0)
		return r;
	window->rows = r;
	room -= window->rows > room;
	window->scroll = CLAMP(window->scroll, 0, MAX(window->rows - room, 0));
	r = page_draw(canvas, &window->page, room, window->scroll);
	if (room < canvas->rows)
		canvas_textf(canvas, room, 0, canvas->columns, ROLE_DIM,
			     "%d more lines: Up, Down, or a larger window; q quits", window->rows - room);
	terminal_show(window->terminal, whole);
	return MIN(r, 0);
}

int window_draw(struct window *window, const struct strbuf *page)
{
	strbuf_reset(&window->page);
	strbuf_add(&window->page, page->data, page->len);
	return window->page.failed || page->failed ? -ENOMEM : show_page(window, false);
}

int window_fd(const struct window *window)
{
	return terminal_fd(window->terminal);
}

/* How far a key scrolls; 0: it is another. */
static int scroll_of(const struct window *window, const struct event *event)
{
	int page = MAX(terminal_canvas(window->terminal)->rows - 3, 1); /* but what stays (page.h) */

	if (event->type == EVENT_WHEEL)
		return event->wheel;
	switch (event->key) {
	case KEY_CODE_UP:
		return -1;
	case KEY_CODE_DOWN:
		return 1;
	case KEY_CODE_PAGE_UP:
		return -page;
	case KEY_CODE_PAGE_DOWN:
	case ' ':
		return page;
	case KEY_CODE_HOME:
		return -window->rows;
	case KEY_CODE_END:
		return window->rows;
	default:
		return 0;
	}
}

static enum window_event take_window_event(struct window *window, const struct event *event)
{
	if (event->type == EVENT_END ||
	    (event->type == EVENT_KEY && (event->key == 'q' || event->key == 'Q')))
		return WINDOW_QUIT;
	if (event->type == EVENT_RESIZED) {
		show_page(window, true);
		return WINDOW_RESIZED;
	}
	window->scroll += scroll_of(window, event);
	show_page(window, false);
	return WINDOW_NONE;
}

/* All events that there are: what has been read from the terminal wakes nobody again. */
enum window_event window_take(struct window *window)
{
	enum window_event taken = WINDOW_NONE;
	struct event event;

	while (taken != WINDOW_QUIT && (event = terminal_take(window->terminal)).type != EVENT_NONE) {
		enum window_event one = take_window_event(window, &event);

		taken = one == WINDOW_NONE ? taken : one;
	}
	return taken;
}
