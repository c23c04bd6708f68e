// SPDX-License-Identifier: Apache-2.0
/*
 * Pages of text on a terminal, one drawn over the other (page.h), fitted to its size; keys scroll, until q is
 * pressed or a signal comes.
 */
#pragma once

#include "base/strbuf.h"

struct window;

enum window_event { WINDOW_NONE, WINDOW_RESIZED, WINDOW_QUIT };

/* As terminal_open(). */
int window_open(bool colours, struct window **ret_window);
/* Restores the terminal. */
void window_close(struct window *window);
/* Columns. */
unsigned window_width(struct window *window);
/* Shows the page, which is kept for keys; a last line says how much of it is not seen. -ENOMEM. */
int window_draw(struct window *window, const struct strbuf *page);
/* To wait for: readable when window_take() has something. */
int window_fd(const struct window *window);
/* WINDOW_RESIZED: a page of the new width is wanted. */
enum window_event window_take(struct window *window);
