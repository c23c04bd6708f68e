// SPDX-License-Identifier: Apache-2.0
/*
 * The terminal as a window that is drawn anew again and again: the alternate screen, so that nothing is left
 * of it afterwards, fitted to its size, until q is pressed or a signal comes.
 */
#pragma once

#include "base/strbuf.h"

struct window;

enum window_event { WINDOW_NONE, WINDOW_RESIZED, WINDOW_QUIT };

/* Takes SIGINT, SIGTERM, SIGHUP, SIGWINCH and SIGCONT of this process. -errno. */
int window_open(struct window **ret_window);
/* Restores the terminal. */
void window_close(struct window *window);
/* Columns; 0: not known. */
unsigned window_width(const struct window *window);
/* Shows @page from its first line, as much as fits; a last line says how many do not. -errno. */
int window_draw(struct window *window, const struct strbuf *page);
/* To wait for: readable when window_take() has something. */
int window_fd(const struct window *window);
enum window_event window_take(struct window *window);
