# SPDX-License-Identifier: Apache-2.0
"""Messages of protobuf as they are on the wire."""
VARINT, FIXED64, BYTES = range(3)


def varint(data, at):
    """(number, where it ends)"""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        assert shift < 70, "a varint of more than ten bytes"


def fields(data):
    """[(number, value)] of a message: numbers, bytes; fixed64 as 8 bytes."""
    found, at, end = [], 0, len(data)
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at) # nearly all are one byte, and there are millions
        number, wire = tag >> 3, tag & 7
        if wire == FIXED64:
            value, at = data[at:at + 8], at + 8
        else:
            value, at = (data[at], at + 1) if data[at] < 0x80 else varint(data, at)
            if wire != VARINT:
                assert wire == BYTES, f"wire type {wire} of field {number}"
                assert at + value <= end, f"field {number} goes beyond its message"
                value, at = data[at:at + value], at + value
        found.append((number, value))
    return found


def packed(data):
    """The numbers of a packed field."""
    found, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        found.append(number)
    return found
