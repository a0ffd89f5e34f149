#!/usr/bin/env python3
"""Writes the colour profiles of the tests beside this file, and what LittleCMS makes of colours in them.

The profiles are made here from published numbers, so they are the project's own. Each line of
`expected.txt` is a profile, a colour in it, and the sRGB colour LittleCMS gives (relative
colorimetric, no black point compensation), 8 bits a channel.

Run with `pip install Pillow` (it brings LittleCMS): `python3 reference.py`.
"""

import struct
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageCms

D50 = (0.9642, 1.0, 0.8249)
BRADFORD = ((0.8951, 0.2664, -0.1614), (-0.7502, 1.7135, 0.0367), (0.0389, -0.0685, 1.0296))


def apply(matrix, vector):
    return tuple(sum(a * b for a, b in zip(row, vector)) for row in matrix)


def product(one, two):
    return tuple(tuple(sum(row[k] * two[k][c] for k in range(3)) for c in range(3)) for row in one)


def inverse(m):
    (a, b, c), (d, e, f), (g, h, i) = m
    det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    rows = ((e * i - f * h, c * h - b * i, b * f - c * e),
            (f * g - d * i, a * i - c * g, c * d - a * f),
            (d * h - e * g, b * g - a * h, a * e - b * d))
    return tuple(tuple(x / det for x in row) for row in rows)


def white_point(x, y):
    return (x / y, 1.0, (1 - x - y) / y)


def matrix_to_d50(red, green, blue, white):
    """The matrix from linear RGB with these chromaticities to XYZ relative to D50."""
    columns = [white_point(*c) for c in (red, green, blue)]
    primaries = tuple(zip(*columns))
    source = white_point(*white)
    scale = apply(inverse(primaries), source)
    to_xyz = tuple(tuple(p * s for p, s in zip(row, scale)) for row in primaries)
    cone_from, cone_to = apply(BRADFORD, source), apply(BRADFORD, D50)
    ratio = tuple(tuple(cone_to[r] / cone_from[r] if r == c else 0.0 for c in range(3)) for r in range(3))
    return product(product(inverse(BRADFORD), product(ratio, BRADFORD)), to_xyz)


def fixed(*values):
    return b"".join(struct.pack(">i", round(v * 65536)) for v in values)


def xyz_tag(values):
    return b"XYZ \0\0\0\0" + fixed(*values)


def gamma_tag(gamma):
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256))


def table_tag(curve, points):
    values = [round(65535 * curve(i / (points - 1))) for i in range(points)]
    return b"curv\0\0\0\0" + struct.pack(f">I{points}H", points, *values)


def srgb_curve_tag():
    return b"para\0\0\0\0\0\3\0\0" + fixed(2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)


def lab(xyz):
    f = [t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
         for t in (max(v, 0.0) / w for v, w in zip(xyz, D50))]
    return (116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2]))


def lut16_tag(inputs, points, color_to_xyz):
    """A `lut16Type` (ICC.1:2010, section 10.10) to Lab in the legacy encoding of version 2."""
    head = struct.pack(">4s4xBBBx", b"mft2", inputs, 3, points) + fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    ramp = struct.pack(">HH", 0, 65535)
    grid = []
    for index in range(points ** inputs):
        # The first channel varies slowest.
        color = [index // points ** (inputs - 1 - c) % points / (points - 1) for c in range(inputs)]
        lightness, a, b = lab(color_to_xyz(color))
        values = (lightness * 652.8, (a + 128) * 256, (b + 128) * 256)
        grid += [min(65535, max(0, round(v))) for v in values]
    table = struct.pack(f">{len(grid)}H", *grid)
    return head + struct.pack(">HH", 2, 2) + ramp * inputs + table + ramp * 3


def text_tag(text):
    return b"desc\0\0\0\0" + struct.pack(">I", len(text) + 1) + text.encode() + b"\0" + bytes(4 + 4 + 2 + 1 + 67)


def profile(space, connection, kind, tags):
    tags = {"desc": text_tag("test"), "cprt": b"text\0\0\0\0none\0", "wtpt": xyz_tag(D50), **tags}
    directory, body = b"", b""
    start = 128 + 4 + 12 * len(tags)
    for name, data in tags.items():
        directory += name.encode() + struct.pack(">II", start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    head = bytearray(128)
    struct.pack_into(">I", head, 0, start + len(body))
    struct.pack_into(">I", head, 8, 0x02400000)
    head[12:24] = kind + space + connection
    struct.pack_into(">6H", head, 24, 2026, 1, 1, 0, 0, 0)
    head[36:40] = b"acsp"
    head[68:80] = fixed(*D50)
    return bytes(head) + struct.pack(">I", len(tags)) + directory + body


def matrix_profile(matrix, curve):
    columns = zip(*matrix)
    tags = {f"{c}XYZ": xyz_tag(column) for c, column in zip("rgb", columns)}
    return profile(b"RGB ", b"XYZ ", b"mntr", {**tags, **{f"{c}TRC": curve for c in "rgb"}})


D65 = (0.3127, 0.3290)
DISPLAY_P3 = matrix_to_d50((0.680, 0.320), (0.265, 0.690), (0.150, 0.060), D65)
ADOBE_RGB = matrix_to_d50((0.64, 0.33), (0.21, 0.71), (0.15, 0.06), D65)
PROPHOTO = matrix_to_d50((0.7347, 0.2653), (0.1596, 0.8404), (0.0366, 0.0001), (0.3457, 0.3585))


def romm(value):
    """The curve of ROMM RGB (ISO 22028-2), decoding."""
    return value / 16 if value < 16 / 512 else value ** 1.8


def adobe_rgb_to_xyz(color):
    return apply(ADOBE_RGB, [value ** 2.19921875 for value in color])


def print_to_xyz(inks):
    """Four inks on paper, each a filter: as good a press as these tests need."""
    filters = ((0.15, 0.25, 0.70), (0.35, 0.18, 0.20), (0.75, 0.80, 0.08), (0.03, 0.03, 0.03))
    light = D50
    for ink, keeps in zip(inks, filters):
        light = [v * (1 - ink * (1 - k)) for v, k in zip(light, keeps)]
    return light


PROFILES = {
    "display-p3": matrix_profile(DISPLAY_P3, srgb_curve_tag()),
    "adobe-rgb": matrix_profile(ADOBE_RGB, gamma_tag(2.19921875)),
    "prophoto": matrix_profile(PROPHOTO, gamma_tag(1.8)),
    "prophoto-table": matrix_profile(PROPHOTO, table_tag(romm, 512)),
    "adobe-rgb-lut": profile(b"RGB ", b"Lab ", b"mntr", {"A2B0": lut16_tag(3, 15, adobe_rgb_to_xyz)}),
    "grey-gamma-1.8": profile(b"GRAY", b"XYZ ", b"mntr", {"kTRC": gamma_tag(1.8)}),
    "press": profile(b"CMYK", b"Lab ", b"prtr", {"A2B0": lut16_tag(4, 5, print_to_xyz)}),
}
MODES = {"GRAY": "L", "RGB ": "RGB", "CMYK": "CMYK"}


def colors(channels):
    steps = {1: range(0, 256, 15), 3: (0, 51, 102, 153, 204, 255), 4: (0, 90, 170, 255)}[channels]
    count = len(steps)
    return [tuple(steps[i // count ** c % count] for c in range(channels)) for i in range(count ** channels)]


def main():
    folder = Path(__file__).parent
    srgb = ImageCms.createProfile("sRGB")
    lines = []
    for name, data in PROFILES.items():
        (folder / f"{name}.icc").write_bytes(data)
        mode = MODES[data[16:20].decode()]
        given = colors({"L": 1, "RGB": 3, "CMYK": 4}[mode])
        picture = Image.new(mode, (len(given), 1))
        picture.putdata([c[0] if len(c) == 1 else c for c in given])
        transform = ImageCms.buildTransform(
            ImageCms.ImageCmsProfile(BytesIO(data)), srgb, mode, "RGB",
            ImageCms.Intent.RELATIVE_COLORIMETRIC, ImageCms.Flags.NOOPTIMIZE)
        seen = ImageCms.applyTransform(picture, transform)
        for color, rgb in zip(given, seen.get_flattened_data()):
            lines.append(f"{name} {','.join(map(str, color))} {','.join(map(str, rgb))}\n")
    (folder / "expected.txt").write_text("".join(lines))


main()
