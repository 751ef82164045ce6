# SPDX-License-Identifier: LGPL-2.1-or-later
"""The volfiles of the integration tests: seed S4 as its user wrote it, and stacks in 10.3's shape.

    volfiles.server("brick", "/scratch/b", 49153, {"posix": {"batch-fsync-delay-usec": "0"}})
    volfiles.client("plain", "10.77.0.1", 49153, "/scratch/b", {})

Server stacks: s4, brick (what a 10.3 brick has of translators that act), glusterd (all that a 10.3
glusterd writes). Client stacks: s4, s4-perf (with what S4 has in comments), plain, ctime (plain
and utime, as 10.3's clients are), perf (10.3's default performance translators over ctime).
"""
import os
import uuid

S4_SERVER = """\
volume posix
type storage/posix
option directory /vol1
end-volume
volume brick
type performance/io-threads
option thread-count 8
subvolumes posix
end-volume
### Add network serving capability to above brick.
volume server
type protocol/server
option transport-type tcp
#option transport-type ib-sdp
option client-volume-filename /etc/glusterfs/glusterfs-client.vol
option auth.addr.brick.allow * # Allow access to "brick" volume
subvolumes brick
end-volume
"""

S4_CLIENT = """\
volume client
type protocol/client
option transport-type tcp
#option transport-type ib-sdp
option remote-host 192.168.2.99 # IP address of the remote brick
#option remote-host 10.10.11.99 # IP address of the remote brick
option remote-subvolume brick # name of the remote volume
end-volume
volume iot
type performance/io-threads
option thread-count 4
subvolumes client
end-volume
#volume writebehind
# type performance/write-behind
# option aggregate-size 1MB
# option window-size 4MB
# subvolumes iot
#end-volume
#volume cache
# type performance/io-cache
# option cache-size 512MB
# subvolumes writebehind
#end-volume
"""

VOLUME_ID = "5d1ff5b1-5ad5-4a6e-9a52-2c0b5c5c0c5e"
USER, PASSWORD = "2b1c7e0a-6a06-4f5b-8a3a-1c55f9f1a001", "77a4f6d2-3a3e-4d0f-9b39-0b2f4a6c9002"


def replaced(text, old, new):
    """One place, exactly: the source text must stay what it is."""
    if text.count(old) != 1:
        raise ValueError("%r is there %d times" % (old, text.count(old)))
    return text.replace(old, new)


def s4_server(directory, port):
    text = replaced(S4_SERVER, "option directory /vol1\n", "option directory %s\n" % directory)
    return replaced(text, "option transport-type tcp\n",
                    "option transport-type tcp\noption transport.socket.listen-port %d\n" % port)


def s4_client(address, port, uncommented=False):
    text = replaced(S4_CLIENT, "option remote-host 192.168.2.99 ",
                    "option remote-host %s " % address)
    text = replaced(text, "option transport-type tcp\n",
                    "option transport-type tcp\noption remote-port %d\n" % port)
    if uncommented:
        head, tail = text.split("#volume writebehind", 1)
        text = head + ("#volume writebehind" + tail).replace("\n#", "\n").lstrip("#")
    return text


# ---------------------------------------------------------------- stacks in 10.3's shape

def brick_rows(directory):
    """(name, type, options), the leaf first: those of a 10.3 brick that do something by default."""
    return [
        ("V-posix", "storage/posix", {"directory": directory, "volume-id": VOLUME_ID}),
        ("V-access-control", "features/access-control", {}),
        ("V-locks", "features/locks", {}),
        ("V-index", "features/index", {"index-base": directory + "/.glusterfs/indices",
                                       "xattrop-dirty-watchlist": "trusted.afr.dirty",
                                       "xattrop-pending-watchlist": "trusted.afr.V-"}),
        ("V-io-threads", "performance/io-threads", {}),
        (directory, "debug/io-stats", {"unique-id": directory, "volume-id": VOLUME_ID}),
        server_row(directory),
    ]


def glusterd_rows(directory):
    """The whole stack, as a 10.3 glusterd writes it with every option at its default."""
    glue = directory + "/.glusterfs"
    return [
        ("V-posix", "storage/posix", {"shared-brick-count": "1", "fips-mode-rchecksum": "on",
                                      "volume-id": VOLUME_ID, "directory": directory}),
        ("V-trash", "features/trash", {"trash-internal-op": "off", "brick-path": directory,
                                       "trash-dir": ".trashcan"}),
        ("V-changelog", "features/changelog", {"changelog-notification": "off",
                                               "changelog-dir": glue + "/changelogs",
                                               "changelog-brick": directory}),
        ("V-bitrot-stub", "features/bitrot-stub", {"bitrot": "disable", "export": directory}),
        ("V-access-control", "features/access-control", {}),
        ("V-locks", "features/locks", {"enforce-mandatory-lock": "off"}),
        ("V-worm", "features/worm", {"worm-files-deletable": "on", "worm-file-level": "off",
                                     "worm": "off"}),
        ("V-read-only", "features/read-only", {"read-only": "off"}),
        ("V-leases", "features/leases", {"leases": "off"}),
        ("V-upcall", "features/upcall", {"cache-invalidation": "off"}),
        ("V-io-threads", "performance/io-threads", {}),
        ("V-selinux", "features/selinux", {"selinux": "on"}),
        ("V-marker", "features/marker", {"inode-quota": "off", "quota": "off",
                                         "gsync-force-xtime": "off", "xtime": "off",
                                         "quota-version": "0",
                                         "timestamp-file": "/var/lib/glusterd/marker.tstamp",
                                         "volume-uuid": VOLUME_ID}),
        ("V-barrier", "features/barrier", {"barrier-timeout": "120", "barrier": "disable"}),
        ("V-index", "features/index", {"xattrop-pending-watchlist": "trusted.afr.V-",
                                       "xattrop-dirty-watchlist": "trusted.afr.dirty",
                                       "index-base": glue + "/indices"}),
        ("V-quota", "features/quota", {"deem-statfs": "off", "server-quota": "off",
                                       "volume-uuid": "V"}),
        (directory, "debug/io-stats", {"global-threading": "off", "count-fop-hits": "off",
                                       "latency-measurement": "off", "threads": "16",
                                       "log-level": "INFO", "volume-id": VOLUME_ID,
                                       "unique-id": directory}),
        server_row(directory),
    ]


def server_row(directory):
    return ("V-server", "protocol/server", {
        "transport.socket.keepalive": "1", "auth.addr.%s.allow" % directory: "*",
        "auth-path": directory, "auth.login.%s.password" % USER: PASSWORD,
        "auth.login.%s.allow" % directory: USER, "transport.address-family": "inet",
        "transport-type": "tcp"})


def client_rows(stack, address, port, subvolume):
    rows = [("V-client-0", "protocol/client", {
        "send-gids": "true", "remote-port": str(port), "password": PASSWORD, "username": USER,
        "transport.address-family": "inet", "transport-type": "tcp",
        "remote-subvolume": subvolume, "remote-host": address, "ping-timeout": "42"})]
    if stack in ("ctime", "perf"):
        rows.append(("V-utime", "features/utime", {"noatime": "on"}))
    if stack == "perf":
        rows += [("V-" + name, "performance/" + name, {})
                 for name in ("write-behind", "open-behind", "quick-read", "md-cache")]
    return rows + [("V", "debug/io-stats", {"log-level": "INFO"})]


def rendered(rows, options):
    """The text; `options` adds or changes some, by the volume's type (its last word)."""
    text, below = [], None
    for name, kind, own in rows:
        merged = {**own, **options.get(kind.split("/")[1], {})}
        text += ["volume " + name, "    type " + kind]
        text += ["    option %s %s" % pair for pair in merged.items()]
        text += ["    subvolumes " + below] if below else []
        text += ["end-volume", ""]
        below = name
    return "\n".join(text)


# ---------------------------------------------------------------- what harness.py uses

def exported_name(stack, directory):
    return "brick" if stack == "s4" else directory


def server(stack, directory, port, options):
    if stack == "s4":
        return s4_server(directory, port)
    rows = {"brick": brick_rows, "glusterd": glusterd_rows}[stack](directory)
    return rendered(rows, {**options, "server": {"transport.socket.listen-port": str(port),
                                                 **options.get("server", {})}})


def client(stack, address, port, subvolume, options):
    if stack in ("s4", "s4-perf"):
        return s4_client(address, port, uncommented=stack == "s4-perf")
    return rendered(client_rows(stack, address, port, subvolume), options)


def prepare_dir(stack, directory):
    """What glusterd would have done when the volume was created."""
    if stack == "s4":
        return
    os.makedirs(directory + "/.glusterfs/indices", exist_ok=True)
    os.setxattr(directory, "trusted.glusterfs.volume-id", uuid.UUID(VOLUME_ID).bytes)
