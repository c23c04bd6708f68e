// SPDX-License-Identifier: Apache-2.0
#include "screen/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "screen/signals.h"

enum {
	MOUSE_EVENTS = 8, /* that ncurses keeps (EV_MAX in its lib_mouse.c) */
	ESCAPE_DELAY_MS = 25, /* between Escape and what follows it in a key's sequence */
	KEPT_MAX = 64 << 10, /* of standard error */
	WHEEL_LINES = 3,
};

struct terminal {
	struct canvas canvas, shown;
	SCREEN *screen;
	FILE *keys; /* the terminal, opened for them alone */
	int epoll, signals;
	int kept, standard_error; /* what standard error is meanwhile, and what it was; -1: itself */
	bool colours;
	attr_t attributes[ROLES];
	struct event mouse[MOUSE_EVENTS]; /* that were read together, the newest first */
	unsigned mouse_n;
};

/* ---- standard error ---- */

static void keep_errors(struct terminal *terminal)
{
	terminal->kept = memfd_create("stderr", MFD_CLOEXEC);
	terminal->standard_error = terminal->kept < 0 ? -1 : dup(STDERR_FILENO);
	if (terminal->standard_error >= 0)
		dup2(terminal->kept, STDERR_FILENO);
}

static void tell_errors(struct terminal *terminal)
{
	_cleanup_free_ char *text = malloc(KEPT_MAX);
	ssize_t n;

	if (terminal->standard_error < 0)
		return;
	dup2(terminal->standard_error, STDERR_FILENO);
	n = text ? pread(terminal->kept, text, KEPT_MAX, 0) : 0;
	if (n > 0)
		write_all(STDERR_FILENO, text, (size_t)n);
	closep(&terminal->standard_error);
	closep(&terminal->kept);
}

/* ---- looks ---- */

static void no_colours(struct terminal *terminal)
{
	static const attr_t attributes[ROLES] = {
		[ROLE_HEAD] = A_BOLD, [ROLE_WARN] = A_BOLD,   [ROLE_BAD] = A_BOLD | A_REVERSE,
		[ROLE_DIM] = A_DIM,   [ROLE_ACCENT] = A_BOLD, [ROLE_TAB] = A_UNDERLINE,
	};

	memcpy(terminal->attributes, attributes, sizeof(attributes));
}

/* True colours, 256, 16 or 8: the nearest that the terminal has. */
static void set_colours(struct terminal *terminal)
{
	static const struct {
		int rgb;
		short of_256, of_8;
		attr_t attribute;
	} looks[ROLES] = {
		[ROLE_TEXT] = { 0, -1, -1, 0 },
		[ROLE_HEAD] = { 0, -1, -1, A_BOLD },
		[ROLE_GOOD] = { 0x5fd38d, 78, COLOR_GREEN, 0 },
		[ROLE_WARN] = { 0xf2c14e, 221, COLOR_YELLOW, 0 },
		[ROLE_BAD] = { 0xff6b6b, 203, COLOR_RED, A_BOLD },
		[ROLE_DIM] = { 0x7a8494, 244, COLOR_WHITE, 0 },
		[ROLE_ACCENT] = { 0x6cb6ff, 75, COLOR_CYAN, 0 },
		[ROLE_TAB] = { 0x9aa5b5, 247, COLOR_CYAN, 0 },
	};

	for (int i = 0; i < ROLES; i++) {
		int colour = COLORS > 256 ? looks[i].rgb : COLORS == 256 ? looks[i].of_256 : looks[i].of_8;

		if (looks[i].rgb == 0) {
			terminal->attributes[i] = looks[i].attribute;
			continue;
		}
		init_extended_pair(i + 1, colour, -1);
		terminal->attributes[i] = (attr_t)COLOR_PAIR(i + 1) | looks[i].attribute;
		if (i == ROLE_DIM && COLORS < 256)
			terminal->attributes[i] |= A_DIM;
	}
}

static void set_looks(struct terminal *terminal)
{
	if (!terminal->colours || !has_colors() || start_color() == ERR || use_default_colors() == ERR)
		no_colours(terminal);
	else
		set_colours(terminal);
}

/* ---- beginning and end ---- */

static int set_size(struct terminal *terminal)
{
	struct winsize size;
	int r;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		resizeterm(MIN(size.ws_row, CANVAS_ROWS_MAX), MIN(size.ws_col, CANVAS_COLUMNS_MAX));
	r = canvas_resize(&terminal->canvas, LINES, COLS);
	if (r == 0)
		r = canvas_resize(&terminal->shown, LINES, COLS);
	if (r == 0)
		clear();
	return r;
}

/*
 * Without waiting, for ncurses reads on until a key's or the mouse's sequence is whole; opened anew, since
 * others write to what the shell has opened.
 */
static int open_keys(struct terminal *terminal)
{
	const char *name = ttyname(isatty(STDIN_FILENO) ? STDIN_FILENO : STDOUT_FILENO);
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = name ? open(name, flags) : -1;

	/* After su and sudo it is another user's. */
	if (fd < 0)
		fd = open("/dev/tty", flags);
	terminal->keys = fd < 0 ? NULL : fdopen(fd, "r");
	if (!terminal->keys) {
		closep(&fd);
		return -ENOTTY;
	}
	return epoll_watch(terminal->epoll, fd);
}

static int begin_screen(struct terminal *terminal)
{
	terminal->screen = newterm(NULL, stdout, terminal->keys);
	if (!terminal->screen)
		return -ENOENT;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	set_escdelay(ESCAPE_DELAY_MS);
	mouseinterval(0);
	/* Else ncurses makes a click of a press and a release that are read together, at any interval. */
	mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	set_looks(terminal);
	return set_size(terminal);
}

/* The user's; where nothing was chosen, as in containers, that of nearly all terminals. */
static void set_locale(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	bool chosen = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		chosen |= getenv(names[i]) && *getenv(names[i]);
	setlocale(LC_CTYPE, chosen ? "" : "C.UTF-8");
}

int terminal_open(bool colours, struct terminal **ret_terminal)
{
	struct terminal *terminal;
	int r;

	if (!isatty(STDOUT_FILENO))
		return -ENOTTY;
	terminal = calloc(1, sizeof(*terminal));
	if (!terminal)
		return -ENOMEM;
	terminal->colours = colours;
	terminal->signals = terminal->kept = terminal->standard_error = -1;
	set_locale();
	terminal->canvas.ascii = !STRV_EQ(nl_langinfo(CODESET), "UTF-8");
	terminal->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = terminal->epoll < 0 ? -errno : signals_take(terminal->epoll, &terminal->signals);
	if (r == 0)
		r = open_keys(terminal);
	if (r == 0)
		r = begin_screen(terminal);
	if (r < 0) {
		terminal_close(terminal);
		return r;
	}
	keep_errors(terminal);
	*ret_terminal = terminal;
	return 0;
}

void terminal_close(struct terminal *terminal)
{
	if (!terminal)
		return;
	if (terminal->screen) {
		endwin();
		delscreen(terminal->screen);
	}
	tell_errors(terminal);
	if (terminal->keys)
		fclose(terminal->keys);
	canvas_done(&terminal->canvas);
	canvas_done(&terminal->shown);
	closep(&terminal->signals);
	closep(&terminal->epoll);
	free(terminal);
}

struct canvas *terminal_canvas(struct terminal *terminal)
{
	return &terminal->canvas;
}

/* ---- showing ---- */

static bool cells_equal(const struct cell *a, const struct cell *b)
{
	return memcmp(a->c, b->c, sizeof(a->c)) == 0 && a->role == b->role && a->reversed == b->reversed;
}

static void put_cell(const struct terminal *terminal, int row, int column, const struct cell *cell)
{
	wchar_t text[2 + CELL_MARKS] = { 0 };
	attr_t attributes = terminal->attributes[cell->role] ^ (cell->reversed ? A_REVERSE : 0);
	cchar_t c;

	/* The C library may not know what Unicode has got since. */
	for (int i = 0; i <= CELL_MARKS && cell->c[i]; i++)
		text[i] = wcwidth(cell->c[i]) < 0 ? L'?' : cell->c[i];
	if (setcchar(&c, text, attributes & ~A_COLOR, (short)PAIR_NUMBER(attributes), NULL) == OK)
		mvadd_wch(row, column, &c);
}

void terminal_show(struct terminal *terminal, bool whole)
{
	for (int row = 0; row < terminal->canvas.rows; row++)
		for (int i = 0; i < terminal->canvas.columns; i++) {
			const struct cell *cell = canvas_cell(&terminal->canvas, row, i);
			struct cell *shown = canvas_cell(&terminal->shown, row, i);

			if (cells_equal(cell, shown))
				continue;
			*shown = *cell;
			if (cell->c[0] != 0)
				put_cell(terminal, row, i, cell);
		}
	if (whole)
		clearok(stdscr, TRUE);
	refresh();
}

/* ---- events ---- */

int terminal_fd(const struct terminal *terminal)
{
	return terminal->epoll;
}

static struct event take_signal(struct terminal *terminal)
{
	enum screen_signal signal = signals_next(terminal->signals);
	struct event event = { .type = EVENT_NONE };

	if (signal == SCREEN_SIGNAL_NONE)
		return event;
	event.type = signal == SCREEN_SIGNAL_END || set_size(terminal) < 0 ? EVENT_END : EVENT_RESIZED;
	if (signal == SCREEN_SIGNAL_CONTINUED)
		clearok(stdscr, TRUE);
	return event;
}

static struct event mouse_event(const MEVENT *mouse)
{
	struct event event = { .type = EVENT_NONE, .row = mouse->y, .column = mouse->x };

	if (mouse->bstate & (BUTTON4_PRESSED | BUTTON5_PRESSED)) {
		event.type = EVENT_WHEEL;
		event.wheel = mouse->bstate & BUTTON4_PRESSED ? -WHEEL_LINES : WHEEL_LINES;
	} else if (mouse->bstate & BUTTON1_PRESSED) {
		event.type = EVENT_CLICK;
	}
	return event;
}

/* What ncurses has read together is one key, and it gives the newest first. */
static struct event take_mouse(struct terminal *terminal)
{
	MEVENT mouse;

	while (terminal->mouse_n < ARRAY_SIZE(terminal->mouse) && getmouse(&mouse) == OK)
		terminal->mouse[terminal->mouse_n++] = mouse_event(&mouse);
	return terminal->mouse_n > 0 ? terminal->mouse[--terminal->mouse_n] :
				       (struct event){ .type = EVENT_NONE };
}

static uint32_t key_of_code(wint_t code)
{
	static const struct {
		wint_t code;
		enum key key;
	} keys[] = {
		{ KEY_UP, KEY_CODE_UP },         { KEY_DOWN, KEY_CODE_DOWN },
		{ KEY_LEFT, KEY_CODE_LEFT },     { KEY_RIGHT, KEY_CODE_RIGHT },
		{ KEY_PPAGE, KEY_CODE_PAGE_UP }, { KEY_NPAGE, KEY_CODE_PAGE_DOWN },
		{ KEY_HOME, KEY_CODE_HOME },     { KEY_END, KEY_CODE_END },
		{ KEY_BTAB, KEY_CODE_BACK_TAB }, { KEY_ENTER, KEY_CODE_ENTER },
		{ KEY_DC, KEY_CODE_DELETE },     { KEY_BACKSPACE, KEY_CODE_BACKSPACE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].code == code)
			return keys[i].key;
	return code > KEY_F(0) && code <= KEY_F(12) ? KEY_CODE_FUNCTION + (code - KEY_F(0)) : 0;
}

static uint32_t key_of_character(wint_t c)
{
	switch (c) {
	case '\t':
		return KEY_CODE_TAB;
	case '\r':
	case '\n':
		return KEY_CODE_ENTER;
	case 0x1b:
		return KEY_CODE_ESCAPE;
	case 0x7f:
	case '\b':
		return KEY_CODE_BACKSPACE;
	default:
		return c;
	}
}

/* Whether nobody will ever type there again. */
static bool is_hung_up(const struct terminal *terminal)
{
	int n;

	return ioctl(fileno(terminal->keys), FIONREAD, &n) < 0;
}

struct event terminal_take(struct terminal *terminal)
{
	struct event event = take_signal(terminal);
	wint_t c;
	int r;

	if (event.type != EVENT_NONE)
		return event;
	if (terminal->mouse_n > 0)
		return terminal->mouse[--terminal->mouse_n];
	r = get_wch(&c);
	if (r == KEY_CODE_YES && c == KEY_MOUSE)
		return take_mouse(terminal);
	if (r == ERR) {
		event.type = is_hung_up(terminal) ? EVENT_END : EVENT_NONE;
		return event;
	}
	event.key = r == KEY_CODE_YES ? key_of_code(c) : key_of_character(c);
	event.type = event.key ? EVENT_KEY : EVENT_NONE;
	return event;
}
