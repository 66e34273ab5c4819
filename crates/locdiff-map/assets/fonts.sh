#!/usr/bin/env bash
# Makes the font beside this script: DejaVu Sans reduced to what labels need, without hinting and
# layout tables. Run once; the result is committed.
#
# Needs Debian's `fonts-dejavu-core` (2.37-6 made the committed file) and PyPI's `fonttools` (4.68.0).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

letters=U+0020-007E,U+00A0-017F,U+0218-021B,U+0386-03CE,U+0400-045F,U+0490-0491
punctuation=U+2010-2015,U+2018-201E,U+2022,U+2026,U+2030,U+2032-2033,U+20AC
digits=U+2070,U+2074-207B,U+2080-2089
signs=U+2190-2193,U+2202,U+2211,U+2212,U+221A,U+221E,U+222B,U+2248,U+2260,U+2264-2265

# The time stamp of the font is kept, so that the same input gives the same file.
pyftsubset "${1:-/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf}" \
    --unicodes="$letters,$punctuation,$digits,$signs" --output-file=DejaVuSans-subset.ttf \
    --no-hinting --layout-features='' --notdef-outline --no-recalc-timestamp \
    --drop-tables+=GSUB,GPOS,GDEF,kern,FFTM,gasp --name-IDs='0,1,2,5,13,14'
