/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TEXT_MARKDOWN_H
#define BASE_TEXT_MARKDOWN_H

#include <stdio.h>

/* The text in a cell of a table, to be read as it is: what means something to Markdown or HTML is
 * escaped, and the end of a line becomes a blank. */
void markdown_text(const char *text, FILE *stream);

#endif
