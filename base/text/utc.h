/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TEXT_UTC_H
#define BASE_TEXT_UTC_H

enum { UTC_TEXT = 32, UUID_TEXT = 37 };

/* "2026-11-21T13:18:05.123Z" */
void utc_now(char text[UTC_TEXT]);
/* A random UUID, version 4, from the kernel's generator. */
void uuid_make(char text[UUID_TEXT]);

#endif
