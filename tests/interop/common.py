# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the scenarios of this directory share: where genuine 10.3 itself differs from a local file
system, and a few ways to fill and to compare trees."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))

import harness          # noqa: E402
import treedump         # noqa: E402
import trees            # noqa: E402


def compare_trees(test, got, expected, what, without=()):
    """What a user sees of two trees, inode numbers apart; `without` names more to leave out."""
    left_out = ("ino", *without)
    lines = trees.differences(trees.snapshot(got, False, left_out),
                              trees.snapshot(expected, False, left_out))
    test.check(not lines, "%s: same tree\n%s" % (what, "\n".join(lines)))


def check_brick(test, brick, what, tolerate=()):
    """Every invariant of a brick's tree; the brick is stopped, or quiet."""
    violations = treedump.Tree(brick.dir, tolerate).check()
    test.check(not violations, "%s: a sound brick\n%s" % (what, "\n".join(violations[:20])))


def pair(test):
    return "brick %s, client %s" % (test.args.brick, test.args.client)


# Where genuine differs from a local file system (seen with genuine on both sides), as names for
# fsdiff --without: (name, the side it is due to, what it does). "either": it takes two of ours.
DIFFERENCES_OF_GENUINE = [
    ("zero", "client", "FALLOC_FL_ZERO_RANGE leaves the data"),
    ("rename-flags", "either", "RENAME_NOREPLACE and RENAME_EXCHANGE: EINVAL"),
    ("flock", "either", "flock and fcntl locks are in each other's way"),
    ("orphan-attributes", "either", "attributes of an unlinked open file: ESTALE"),
    ("read-append", "brick", "O_RDONLY | O_APPEND asks for write permission"),
    ("setid", "either", "setuid and setgid are lost at create, kept at a user's write"),
    ("list-unreadable", "brick", "listxattr asks for read permission"),
    ("user-link", "brick", "a user may not link what he may write but does not own"),
    ("user-chown", "brick", "a user may not chown to the group that the file has"),
    ("rename-over-links", "brick", "leaves the old name's gfid2path, and link says EEXIST later"),
]

# The brick's descriptor has O_APPEND or O_DIRECT as the user's has, and pages that were changed
# through a mapping are written back through any descriptor: appended, or refused. So there are two
# runs, one without the mapping and one without such descriptors.
RUNS_OF_GENUINE = [["mmap-write"], ["append", "open-direct", "misaligned"]]


# What the wire of version 400 cannot say, whoever speaks it.
LIMITS_OF_THE_WIRE = [
    ("rename-flags", "RENAME has no flags: RENAME_NOREPLACE and RENAME_EXCHANGE are EINVAL"),
    ("user-chown", "a user's chown to nobody else looks like his kernel's dropping of set-id bits"),
    ("orphan-special", "a fifo's open stays in the kernel: without a name it is ESTALE"),
]


def sides_of_genuine(args):
    sides = {side for side in ("brick", "client") if getattr(args, side) == "genuine"}
    return sides | {"either"} if sides else sides


def runs_of_fsdiff(args):
    """What fsdiff leaves out, for each run that there has to be."""
    sides = sides_of_genuine(args)
    if not sides:
        return [[name for name, _ in LIMITS_OF_THE_WIRE]]
    left_out = [name for name, side, _ in DIFFERENCES_OF_GENUINE if side in sides]
    return [left_out + more for more in RUNS_OF_GENUINE]


# Cases of tests/posix that genuine fails with genuine on both sides: (glob, the side it is due to,
# what it does). "either": it takes two of ours to pass.
CASES_OF_GENUINE = [
    ("write_by_a_user_clears_setuid_and_setgid", "either", "refuses the stripped mode: EPERM"),
    ("truncate_by_a_user_clears_setuid_and_setgid", "either", "the same"),
    ("open_with_trunc_by_a_user_clears_setuid", "either", "the same"),
    ("ftruncate_by_a_user_clears_setuid", "either", "the same"),
    ("setgid_executable_made_by_a_stranger_*", "brick", "takes setgid away"),
    ("created_file_keeps_suid_sgid_and_sticky_bits", "brick", "takes setuid and setgid away"),
    ("zeroed_range_*", "client", "FALLOC_FL_ZERO_RANGE leaves the data"),
    ("removed_directory_that_is_open_*", "either", "ESTALE"),
    ("unlinked_file_changes_mode_owner_and_times_*", "either", "ESTALE"),
    ("xattr_of_an_unlinked_open_file_works", "either", "ESTALE"),
    ("ninety_links_are_counted_up_and_down", "brick", "ENOSPC: gfid2path fills ext4's xattrs"),
    ("link_counts_are_right_after_many_link_together", "brick", "the same"),
    ("neighbouring_locks_of_one_owner_merge", "brick", "they stay two"),
    ("waiting_reader_gets_the_lock_when_the_writer_downgrades", "brick", "it waits on"),
    ("two_upgrades_of_one_read_lock_do_not_both_succeed", "brick", "both wait: no EDEADLK"),
    ("flock_and_fcntl_locks_do_not_see_each_other", "either", "one space of locks"),
    ("file_at_the_end_of_a_real_4095_byte_path_works", "either", "deep mkdir: ESTALE"),
    ("file_beyond_path_max_is_reached_by_steps", "either", "the same"),
    ("directory_tree_moves_deeper_than_path_max", "either", "the same"),
    ("direct_flag_comes_and_goes_with_setfl", "either", "EINVAL: O_DIRECT stays on the brick"),
    ("read_moves_neither_mtime_nor_ctime", "either", "ctime moves with atime"),
    ("trusted_xattr_is_not_listed_to_a_user", "client", "it is listed"),
]


# The wire counts no more blocks than the size needs.
CASES_BEYOND_THE_WIRE = [("fallocate_with_keep_size_keeps_it", "wire: blocks are capped to the size")]


def cases_genuine_fails(args):
    """(glob, reason) for posix-cases --skip."""
    sides = sides_of_genuine(args)
    return CASES_BEYOND_THE_WIRE + [(glob, "genuine: " + why) for glob, side, why in CASES_OF_GENUINE if side in sides]


def marks_of_genuine(kinds):
    """What genuine leaves in a brick, for treedump's `tolerate`: the gfid2path of a name that a
    rename replaced stays on a file that has other names; a directory whose rename failed (not
    empty) has lost its handle; the target of a copy_file_range (its own mount sends none) stays
    open until the brick ends."""
    return ["stale", "dir-handle", "leftover"] if "genuine" in kinds else []
