// SPDX-License-Identifier: Apache-2.0
/*
 * The terminal that a canvas is shown on, by ncurses: its alternate screen, so that nothing is left of it
 * afterwards, its size, its keys and its mouse. Only what differs from what it shows is sent. What this
 * program writes to standard error meanwhile is kept, and written when the terminal is closed. One thread;
 * one terminal a process.
 */
#pragma once

#include "screen/canvas.h"

struct terminal;

/* Keys that are no character. */
enum key {
	KEY_CODE_FIRST = 0x110000, /* behind all of Unicode */
	KEY_CODE_UP,
	KEY_CODE_DOWN,
	KEY_CODE_LEFT,
	KEY_CODE_RIGHT,
	KEY_CODE_PAGE_UP,
	KEY_CODE_PAGE_DOWN,
	KEY_CODE_HOME,
	KEY_CODE_END,
	KEY_CODE_TAB,
	KEY_CODE_BACK_TAB,
	KEY_CODE_ENTER,
	KEY_CODE_ESCAPE,
	KEY_CODE_BACKSPACE,
	KEY_CODE_DELETE,
	KEY_CODE_FUNCTION, /* + n: F n, to F12 */
	KEY_CODE_LAST = KEY_CODE_FUNCTION + 12,
};

enum event_type { EVENT_NONE, EVENT_KEY, EVENT_CLICK, EVENT_WHEEL, EVENT_RESIZED, EVENT_END };
struct event {
	enum event_type type;
	uint32_t key; /* a character, or enum key */
	int row, column; /* of the mouse */
	int wheel; /* lines, up is negative */
};

/*
 * The terminal of standard output, with its colours or none. Takes SIGINT, SIGTERM, SIGHUP, SIGWINCH and
 * SIGCONT of this process; threads that are started later receive none of them either. -ENOTTY: no terminal;
 * -ENOENT: its kind (TERM) is not known; -errno.
 */
int terminal_open(bool colours, struct terminal **ret_terminal);
/* Restores the terminal. */
void terminal_close(struct terminal *terminal);

/* To draw on; of the terminal's size. */
struct canvas *terminal_canvas(struct terminal *terminal);
/* Sends what has changed. @whole: the screen anew, after others may have written there. */
void terminal_show(struct terminal *terminal, bool whole);
/* To wait for: readable when terminal_take() may have something. */
int terminal_fd(const struct terminal *terminal);
/* The next event; EVENT_NONE: there is none now. */
struct event terminal_take(struct terminal *terminal);
