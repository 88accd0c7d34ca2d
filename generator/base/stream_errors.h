// Errors of streams that belong to a library. libxlsxwriter writes each part of a workbook to a temporary
// file, rewinds it and reads it back, and checks none of these calls: a workbook with a missing part would be
// a success. So the program replaces rewind and fclose of the C library, for itself and its libraries; both
// note whether the stream had an error.
#ifndef GENTABLES_STREAM_ERRORS_H
#define GENTABLES_STREAM_ERRORS_H

// The number of streams with an error that were rewound or closed so far. In main.c.
unsigned stream_errors(void);

#endif
