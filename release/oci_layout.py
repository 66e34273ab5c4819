"""Writes an OCI image layout (specification 1.1) with one layer, from a folder. The same files give the same bytes.

    oci_layout.py ROOT LAYOUT VERSION ARCHITECTURE EPOCH
    oci_layout.py --layers LAYOUT          prints the files of the layers of a layout
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

# The user that the program runs as; the folder of models is its own.
USER = 10001
OWNED = {"models"}
CONFIG = {
    "User": f"{USER}:{USER}",
    "Env": ["PATH=/usr/bin", "LOCDIFF_HOME=/models", "LOCDIFF_HOST=0.0.0.0", "LOCDIFF_PORT=8417", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
    "Entrypoint": ["/usr/bin/locdiff"],
    "Cmd": ["serve"],
    "ExposedPorts": {"8417/tcp": {}},
    "Volumes": {"/models": {}},
    "WorkingDir": "/models",
    "StopSignal": "SIGTERM",
}


def layer_of(root: Path, epoch: int) -> bytes:
    """The folder as a tar, in the order of names."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            entry = archive.gettarinfo(path, name)
            entry.uid = entry.gid = USER if name in OWNED else 0
            entry.uname = entry.gname = ""
            entry.mtime = epoch
            entry.mode = 0o1777 if name == "tmp" else entry.mode & 0o755
            if entry.isreg():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
    return content.getvalue()


def write(root: Path, layout: Path, version: str, architecture: str, epoch: int) -> None:
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True, exist_ok=True)

    def blob(content: bytes, kind: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def as_json(value: object) -> bytes:
        return json.dumps(value, sort_keys=True).encode()

    tar = layer_of(root, epoch)
    layer = blob(gzip.compress(tar, 9, mtime=0), "layer.v1.tar+gzip")
    created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "locdiff",
        "org.opencontainers.image.description": "Where on Earth was this taken? Image geolocalization that answers with a probability map.",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.source": "https://github.com/locdiff/locdiff",
    }
    config = {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": CONFIG | {"Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]},
        "history": [{"created": created, "created_by": "release/image"}],
    }
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": blob(as_json(config), "config.v1+json"), "layers": [layer], "annotations": labels}
    named = blob(as_json(manifest), "manifest.v1+json") | {
        "platform": {"architecture": architecture, "os": "linux"},
        "annotations": {"org.opencontainers.image.ref.name": version},
    }
    (layout / "index.json").write_bytes(as_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [named]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def layers(layout: Path) -> list[str]:
    def read(descriptor: dict) -> Path:
        return layout / "blobs" / descriptor["digest"].replace(":", os.sep)

    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(read(index["manifests"][0]).read_text())
    return [str(read(one)) for one in manifest["layers"]]


if __name__ == "__main__":
    if sys.argv[1] == "--layers":
        print(*layers(Path(sys.argv[2])), sep="\n")
    else:
        write(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
