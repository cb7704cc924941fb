//! The ownership check of a configuration file: who owns it, and who else may write it.
//!
//! A configuration file names programs that run as the user. A file that another user owns or may write, such as one
//! left in `/tmp`, would let that user choose them. The file is judged by the metadata of the opened file, so that
//! no other file can take its place between the look and the read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Whom a file lets decide besides the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distrust {
    /// Another user owns the file.
    Owner,
    /// Another user owns the link that leads to the file.
    Link,
    /// Every user of the machine may write the file.
    Everyone,
    /// The members of a group may write the file.
    Group,
}

/// Why a file is not obeyed, as far as it is visible from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unowned {
    /// Whom it lets decide.
    pub distrust: Distrust,
    /// The user that owns the file, or the link.
    pub owner: u32,
    /// The group of the file, or of the link.
    pub group: u32,
    /// The permission bits.
    pub mode: u32,
    /// The user that pml runs as.
    pub user: u32,
}

/// Checks that only the user and root decide what an opened file says.
pub(super) fn check(path: &Path, opened: &Metadata) -> Result<(), Unowned> {
    // A link in a shared directory could lead to any configuration of the user.
    if let Ok(link) = path.symlink_metadata()
        && link.is_symlink()
        && let Err(unowned) = judge_link(Ownership::of(&link), user())
    {
        return Err(unowned);
    }
    judge(Ownership::of(opened), user())
}

/// Tells whether every user of the machine may put files into a directory.
pub(super) fn is_shared(directory: &Metadata) -> bool {
    directory.mode() & 0o002 != 0
}

/// Who owns a file, and who may write it.
#[derive(Debug, Clone, Copy)]
struct Ownership {
    owner: u32,
    group: u32,
    mode: u32,
}

impl Ownership {
    fn of(found: &Metadata) -> Self {
        Self {
            owner: found.uid(),
            group: found.gid(),
            mode: found.mode() & 0o7777,
        }
    }

    fn is_trusted_by(self, user: u32) -> bool {
        self.owner == 0 || self.owner == user
    }

    fn distrusted(self, distrust: Distrust, user: u32) -> Unowned {
        Unowned {
            distrust,
            owner: self.owner,
            group: self.group,
            mode: self.mode,
            user,
        }
    }
}

/// Judges a link by its owner alone: its permission bits mean nothing.
fn judge_link(link: Ownership, user: u32) -> Result<(), Unowned> {
    if link.is_trusted_by(user) {
        Ok(())
    } else {
        Err(link.distrusted(Distrust::Link, user))
    }
}

fn judge(file: Ownership, user: u32) -> Result<(), Unowned> {
    let distrust = if !file.is_trusted_by(user) {
        Distrust::Owner
    } else if file.mode & 0o002 != 0 {
        Distrust::Everyone
    } else if file.mode & 0o020 != 0 && !is_private_group(file.group, file.owner) {
        Distrust::Group
    } else {
        return Ok(());
    };
    Err(file.distrusted(distrust, user))
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Tells whether only the owner is in a group: under the common umask 002 every new file is writable by such a group.
fn is_private_group(group: u32, owner: u32) -> bool {
    if group == 0 {
        return true;
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    has_only(&read("/etc/group"), &read("/etc/passwd"), group, owner)
}

/// Looks for members besides `owner`; a group that is not listed is private if it has the number of its owner.
fn has_only(groups: &str, users: &str, group: u32, owner: u32) -> bool {
    // `name:password:uid:gid:…`
    let accounts: Vec<(&str, u32, u32)> = users
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let user = fields.nth(1)?.parse().ok()?;
            Some((name, user, fields.next()?.parse().ok()?))
        })
        .collect();
    let others_begin_in_it = accounts
        .iter()
        .any(|(_, user, primary)| *primary == group && *user != owner);
    // `name:password:gid:member,member`
    let members = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let number: u32 = fields.nth(2)?.parse().ok()?;
        (number == group).then(|| fields.next().unwrap_or_default())
    });
    let is_owner = |member: &str| {
        accounts
            .iter()
            .any(|(name, user, _)| *name == member && *user == owner)
    };
    match members {
        Some(members) => {
            let mut members = members.split(',').filter(|member| !member.is_empty());
            !others_begin_in_it && members.all(is_owner)
        }
        None => !others_begin_in_it && group == owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_while_its_owner_is_alone_in_it() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:\nbob:x:1001:100::/home/bob:\n";
        let groups = "root:x:0:\nusers:x:100:ann\nann:x:1000:\nteam:x:50:ann,bob\nmine:x:51:ann\n";
        let only_ann = |group| has_only(groups, users, group, 1000);
        assert!(only_ann(1000), "the group of the same name");
        assert!(only_ann(51), "a group with its owner as only member");
        assert!(!only_ann(50), "a team");
        assert!(!only_ann(100), "the primary group of another user");
        assert!(!only_ann(77), "a group of some directory service");
        assert!(
            has_only(groups, users, 1002, 1002),
            "a private group that is not listed"
        );
    }

    #[test]
    fn whoever_can_write_a_file_or_lead_to_it_is_named() {
        // No group of this number is listed, and no user has it: it belongs to some directory service.
        const TEAM: u32 = 4_000_000_000;
        const ANN: u32 = 1000;
        const BOB: u32 = 1001;
        let of = |owner, group, mode| Ownership { owner, group, mode };
        for (owner, group, mode, expected) in [
            (ANN, TEAM, 0o644, None),
            (0, TEAM, 0o644, None),
            (BOB, TEAM, 0o644, Some(Distrust::Owner)),
            (BOB, TEAM, 0o666, Some(Distrust::Owner)),
            (ANN, 0, 0o666, Some(Distrust::Everyone)),
            (ANN, 0, 0o602, Some(Distrust::Everyone)),
            (ANN, TEAM, 0o662, Some(Distrust::Everyone)),
            (ANN, TEAM, 0o660, Some(Distrust::Group)),
            (ANN, TEAM, 0o620, Some(Distrust::Group)),
            (ANN, 0, 0o660, None),
        ] {
            let unowned = expected.map(|distrust| Unowned {
                distrust,
                owner,
                group,
                mode,
                user: ANN,
            });
            assert_eq!(judge(of(owner, group, mode), ANN).err(), unowned);
            let link = (owner == BOB).then_some(Distrust::Link);
            let found = judge_link(of(owner, group, mode), ANN).err();
            assert_eq!(found.map(|unowned| unowned.distrust), link);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn an_opened_file_is_judged_as_it_is_and_a_link_of_the_user_as_what_it_leads_to() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let (file, link) = (root.path().join("file"), root.path().join("link"));
        std::fs::write(&file, "{}").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        for (mode, expected) in [(0o644, None), (0o646, Some(Distrust::Everyone))] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let found = file.metadata().unwrap();
            let unowned = expected.map(|distrust| Unowned {
                distrust,
                owner: found.uid(),
                group: found.gid(),
                mode,
                user: user(),
            });
            assert_eq!(found.uid(), user());
            assert_eq!(check(&file, &found).err(), unowned);
            assert_eq!(check(&link, &found).err(), unowned);
        }
    }
}
