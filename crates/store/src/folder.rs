//! The files.
//!
//! An entry is one file: a head that says for which build and key it is, how long it is and what its bytes sum up to, then the bytes. It is written under
//! another name and renamed, so readers see all of it or nothing; what a crash of the host leaves of it fails the sum. Entries lie in a few parts of the folder, by
//! key, so that the size of a part is known by reading its list.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use crate::build::build;
use crate::digest::Digest;

/// Bytes that a folder may hold, unless somebody says otherwise.
pub const LIMIT: u64 = 512 << 20;

/// Names the folder, or is `off`.
const VARIABLE: &str = "HANDLOOM_CACHE";

/// Begins each file.
const MAGIC: [u8; 8] = *b"HANDLOOM";

/// Bytes of the head: the magic, build, key, length and sum.
const HEAD: usize = 8 + 16 + 16 + 8 + 8;

/// Parts of a folder, one for each first digit of a name.
const PARTS: u64 = 16;

/// Ending of entries.
const ENDING: &str = "code";

/// Beginning of files that are being written.
const UNFINISHED: &str = "unfinished-";

/// After this time nobody is writing a file any more.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// A folder of entries. It need not be there: it is made by the first entry.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    build: Digest,
    limit: u64,
}

/// The folder of the user for all that Handloom keeps, by the rules of XDG.
pub fn user_folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    Some(of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")))?.join("handloom"))
}

impl Store {
    /// The folder that the variable `HANDLOOM_CACHE` names, else one of the user's; `None` if it is `off`, or there is none.
    pub fn of_environment() -> Option<Store> {
        let folder = match std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
            Some(word) if word == "off" => return None,
            Some(named) => std::path::absolute(named).ok()?,
            None => user_folder()?.join("code"),
        };
        Store::at(&folder, LIMIT)
    }

    /// A folder that may hold so many bytes. `None` if it cannot be told which build of the program this is.
    pub fn at(folder: &Path, limit: u64) -> Option<Store> {
        Some(Store { folder: folder.to_owned(), build: build()?, limit })
    }

    /// The same folder, for another build of the program.
    #[must_use]
    pub fn of_build(self, build: Digest) -> Store {
        Store { build, ..self }
    }

    /// What was kept under a key.
    pub fn get(&self, key: Digest) -> Option<Vec<u8>> {
        let name = self.name(key);
        let part = self.part(&name);
        if !is_own(&fs::symlink_metadata(&part).ok()?, true) {
            return None;
        }
        // A pipe or a device must not hold us up.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(part.join(&name)).ok()?;
        let metadata = file.metadata().ok()?;
        let length = usize::try_from(metadata.len()).ok()?.checked_sub(HEAD)?;
        if !is_own(&metadata, false) || metadata.len() > self.limit {
            return None;
        }
        let mut head = [0; HEAD];
        file.read_exact(&mut head).ok()?;
        let mut bytes = Vec::with_capacity(length);
        (&file).take(metadata.len()).read_to_end(&mut bytes).ok()?;
        if head != self.head(key, &bytes) {
            return None;
        }
        // What was used last goes last.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// Keeps bytes under a key. Where that cannot be, nothing is kept.
    pub fn put(&self, key: Digest, bytes: &[u8]) {
        let size = (HEAD + bytes.len()) as u64;
        // An entry leaves room for others.
        if size > self.limit / PARTS / 2 {
            return;
        }
        let name = self.name(key);
        let part = self.part(&name);
        if self.write(&part, &name, &self.head(key, bytes), bytes).is_some() {
            self.trim(&part);
        }
    }

    fn write(&self, part: &Path, name: &str, head: &[u8], bytes: &[u8]) -> Option<()> {
        if fs::symlink_metadata(part).is_err() {
            DirBuilder::new().recursive(true).mode(0o700).create(part).ok()?;
        }
        if !is_own(&fs::symlink_metadata(part).ok()?, true) {
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let unfinished = part.join(format!("{UNFINISHED}{process}-{count}-{name}"));
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
            file.write_all(head)?;
            file.write_all(bytes)?;
            drop(file);
            fs::rename(&unfinished, part.join(name))
        };
        write().inspect_err(|_| drop(fs::remove_file(&unfinished))).ok()
    }

    /// Removes what was used least recently, down to three quarters of what a part may hold.
    fn trim(&self, part: &Path) {
        let most = self.limit / PARTS;
        let mut total = 0;
        let mut entries = Vec::new();
        for item in fs::read_dir(part).into_iter().flatten().flatten() {
            let (path, Ok(metadata)) = (item.path(), item.metadata()) else { continue };
            if !metadata.is_file() {
                continue;
            }
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if path.extension().is_some_and(|e| e == ENDING) && !is_unfinished(&path) {
                total += metadata.len();
                entries.push((used, metadata.len(), path));
            } else if is_unfinished(&path) && used.elapsed().is_ok_and(|age| age > FORGOTTEN) {
                let _ = fs::remove_file(path);
            }
        }
        if total <= most {
            return;
        }
        entries.sort();
        for (_, size, path) in entries {
            if total <= most / 4 * 3 {
                break;
            }
            // Others may remove it at the same time.
            let _ = fs::remove_file(path);
            total -= size;
        }
    }

    fn name(&self, key: Digest) -> String {
        // Builds have entries of their own side by side, so that two of them in turn do not drive each other's out.
        let digest = Digest::of(&(self.build, key)).bytes();
        let digits: String = digest.iter().map(|b| format!("{b:02x}")).collect();
        format!("{digits}.{ENDING}")
    }

    fn part(&self, name: &str) -> PathBuf {
        self.folder.join(&name[..1])
    }

    fn head(&self, key: Digest, bytes: &[u8]) -> [u8; HEAD] {
        let length = (bytes.len() as u64).to_le_bytes();
        let sum = &Digest::of(&(self.build, key, bytes)).bytes()[..8];
        let parts: [&[u8]; 5] = [&MAGIC, &self.build.bytes(), &key.bytes(), &length, sum];
        let mut head = [0; HEAD];
        head.iter_mut().zip(parts.concat()).for_each(|(to, from)| *to = from);
        head
    }
}

fn is_unfinished(path: &Path) -> bool {
    path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(UNFINISHED))
}

/// Whether something is a folder or a file of the user, which nobody else may open.
fn is_own(m: &fs::Metadata, folder: bool) -> bool {
    let kind = if folder { m.is_dir() } else { m.is_file() };
    kind && m.uid() == rustix::process::geteuid().as_raw() && m.mode() & 0o077 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::thread;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("handloom-store-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }

        fn store(&self) -> Store {
            Store::at(&self.0, LIMIT).unwrap()
        }

        /// All files of entries.
        fn files(&self) -> Vec<PathBuf> {
            let list = |p: &Path| fs::read_dir(p).into_iter().flatten().flatten().map(|f| f.path()).collect::<Vec<_>>();
            list(&self.0).iter().flat_map(|part| list(part)).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_was_put_is_there() {
        let folder = Folder::new("there");
        let store = folder.store();
        let key = Digest::of(&1);
        assert_eq!(store.get(key), None);
        assert!(!folder.0.exists(), "looking makes nothing");
        store.put(key, b"one");
        store.put(Digest::of(&2), b"");
        assert_eq!(store.get(key).as_deref(), Some(&b"one"[..]));
        assert_eq!(store.get(Digest::of(&2)).as_deref(), Some(&b""[..]));
        assert_eq!(store.get(Digest::of(&3)), None);
        store.put(key, b"another");
        assert_eq!(store.get(key).as_deref(), Some(&b"another"[..]));
        assert_eq!(mode(&folder.0), 0o700);
        for file in folder.files() {
            assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        }
        // Another build has its own.
        let other = store.clone().of_build(Digest::of(&"other"));
        assert_eq!(other.get(key), None);
        other.put(key, b"of the other");
        assert_eq!(store.get(key).as_deref(), Some(&b"another"[..]));
    }

    #[test]
    fn what_is_damaged_is_not_there() {
        let folder = Folder::new("damaged");
        let store = folder.store();
        let key = Digest::of(&1);
        store.put(key, b"some bytes");
        let [file] = &folder.files()[..] else { panic!("one file") };
        let whole = fs::read(file).unwrap();
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, bytes).unwrap();
            assert_eq!(store.get(key), None, "bit {bit}");
        }
        for n in 0..whole.len() {
            fs::write(file, &whole[..n]).unwrap();
            assert_eq!(store.get(key), None, "{n} bytes");
        }
        fs::write(file, [&whole[..], b"!"].concat()).unwrap();
        assert_eq!(store.get(key), None);
        fs::write(file, &whole).unwrap();
        assert!(store.get(key).is_some());
        // An entry under the name of another one.
        store.put(Digest::of(&2), b"two");
        let two = folder.files().into_iter().find(|f| f != file).unwrap();
        fs::copy(&two, file).unwrap();
        assert_eq!(store.get(key), None);
        // It is written anew.
        store.put(key, b"some bytes");
        assert_eq!(store.get(key).as_deref(), Some(&b"some bytes"[..]));
    }

    #[test]
    fn what_others_could_have_written_is_not_there() {
        let folder = Folder::new("foreign");
        let store = folder.store();
        let key = Digest::of(&1);
        store.put(key, b"bytes");
        let [file] = &folder.files()[..] else { panic!("one file") };
        let part = file.parent().unwrap();
        let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for wrong in [0o644, 0o620, 0o602] {
            set(file, wrong);
            assert_eq!(store.get(key), None, "{wrong:o}");
        }
        set(file, 0o600);
        // Only a privileged user can give a file away.
        if std::os::unix::fs::chown(file, Some(1), None).is_ok() {
            assert_eq!(store.get(key), None);
            std::os::unix::fs::chown(file, Some(rustix::process::geteuid().as_raw()), None).unwrap();
        }
        set(part, 0o770);
        assert_eq!(store.get(key), None);
        store.put(key, b"not in a folder that others can change");
        set(part, 0o700);
        assert_eq!(store.get(key).as_deref(), Some(&b"bytes"[..]));
        // A link, to a file that is all right.
        let elsewhere = folder.0.join("elsewhere");
        fs::rename(file, &elsewhere).unwrap();
        symlink(&elsewhere, file).unwrap();
        assert_eq!(store.get(key), None);
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
        assert_eq!(store.get(key), None);
        store.put(key, b"cannot be written");
        fs::remove_dir(file).unwrap();
        assert!(folder.files().is_empty(), "nothing unfinished is left: {:?}", folder.files());
        store.put(key, b"bytes");
        assert!(store.get(key).is_some());
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_kept() {
        let folder = Folder::new("readonly");
        fs::create_dir_all(&folder.0).unwrap();
        // A file stands where the folder should be.
        let file = folder.0.join("file");
        fs::write(&file, b"").unwrap();
        let store = Store::at(&file, LIMIT).unwrap();
        store.put(Digest::of(&1), b"bytes");
        assert_eq!(store.get(Digest::of(&1)), None);
        let store = Store::at(Path::new("/proc/nowhere"), LIMIT).unwrap();
        store.put(Digest::of(&1), b"bytes");
        assert_eq!(store.get(Digest::of(&1)), None);
    }

    #[test]
    fn the_limit_holds() {
        let folder = Folder::new("limit");
        let limit = 16 * 40_000;
        let store = Store::at(&folder.0, limit).unwrap();
        let size = || folder.files().iter().map(|f| fs::metadata(f).unwrap().len()).sum::<u64>();
        let first = Digest::of(&0);
        for i in 0..400_u32 {
            store.put(Digest::of(&i), &vec![1; 4000]);
            // Used again and again, the first one stays.
            assert!(store.get(first).is_some(), "after {i}");
            assert!(size() <= limit);
        }
        assert!(size() > limit / 2);
        let there = (0..400_u32).filter(|i| store.get(Digest::of(i)).is_some()).count();
        assert!((60..=160).contains(&there), "{there}");
        store.put(Digest::of(&"big"), &vec![1; 30_000]);
        assert_eq!(store.get(Digest::of(&"big")), None);
        // What is not ours stays; what was left unfinished long ago goes.
        let part = folder.files()[0].parent().unwrap().to_owned();
        let old = File::create(part.join("unfinished-1-0-x.code")).unwrap();
        old.set_modified(SystemTime::now() - 2 * FORGOTTEN).unwrap();
        fs::write(part.join("notes.txt"), b"mine").unwrap();
        store.trim(&part);
        assert!(part.join("notes.txt").exists() && !part.join("unfinished-1-0-x.code").exists());
    }

    #[test]
    fn many_at_once() {
        let folder = Folder::new("many");
        let bytes = |i: u32| vec![i as u8; 20_000 + i as usize];
        thread::scope(|s| {
            for t in 0..16 {
                let store = folder.store();
                s.spawn(move || {
                    for i in (0..50).map(|i| (i + t) % 10) {
                        if let Some(there) = store.get(Digest::of(&i)) {
                            assert!(there == bytes(i));
                        }
                        store.put(Digest::of(&i), &bytes(i));
                    }
                });
            }
        });
        assert_eq!(folder.files().len(), 10);
    }
}
