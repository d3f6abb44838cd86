//! Code is made once: in a process, whatever number of modules hold it, and on disk, for all processes.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::{fs, thread};

use handloom_runtime::{
    Arg, Backend, Bounds, CacheCounts, CodeCache, Device, LaunchConfig, LaunchError, Module, Store, launch,
};
use handloom_store::{Digest, LIMIT};

/// Adds up its lanes with those of a function that it calls, in part, meets others, and leaves its bounds where it is told to.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.global .u32 counter;
.func (.param .b32 r) twice(.param .b32 a)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [a];
    shl.b32 %r2, %r1, 1;
    st.param.b32 [r], %r2;
    ret;
}
.visible .entry k(.param .u64 buf, .param .u64 wrong)
{
    .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<4>;
    .shared .b32 tile[256];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    xor.b32 %r4, %r2, 4;
    mov.u32 %r5, tile;
    add.u32 %r5, %r5, %r4;
    ld.shared.u32 %r6, [%r5];
    and.b32 %r7, %r1, 3;
    setp.eq.u32 %p1, %r7, 1;
    @!%p1 bra after;
    {
        .param .b32 a;
        .param .b32 r;
        st.param.b32 [a], %r6;
        call (r), twice, (a);
        ld.param.b32 %r6, [r];
    }
after:
    shfl.sync.bfly.b32 %r8, %r6, 1, 31, -1;
    add.u32 %r6, %r6, %r8;
    brev.b32 %r9, %r6;
    mov.u64 %rd5, counter;
    atom.global.add.u32 %r10, [%rd5], 1;
    ld.param.u64 %rd1, [buf];
    ld.param.u64 %rd6, [wrong];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r9;
    setp.eq.u64 %p2, %rd6, 0;
    @%p2 ret;
    add.u64 %rd7, %rd6, %rd2;
    st.global.u32 [%rd7], %r9;
    ret;
}
.visible .entry other(.param .u64 buf)
{
    ret;
}
";

/// A folder that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("handloom-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn store(&self) -> Store {
        Store::at(&self.0, LIMIT).unwrap()
    }

    /// What a process finds that has nothing but the folder.
    fn fresh(&self) -> CodeCache {
        CodeCache::new(Some(self.store()))
    }

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

fn config(backend: Backend) -> LaunchConfig {
    LaunchConfig { backend, threads: 1, ..LaunchConfig::new([2, 1, 1], [72, 1, 1]) }
}

/// The generators that have code for this host.
fn backends() -> impl Iterator<Item = Backend> {
    // A generator that refuses hands over to the other one, so that both can be asked for anywhere.
    Backend::ALL.into_iter()
}

fn load(cache: &CodeCache, text: &str) -> Module {
    Module::from_text(&Device::with_code(cache).unwrap(), "k.ptx", text).unwrap()
}

/// The bytes that the entry writes, and whether its code was read.
fn run(module: &Module, config: &LaunchConfig) -> (Vec<u8>, bool) {
    let buffer = module.device().zeroed(4 * 72).unwrap();
    let args = [Arg::from(&buffer), Arg::from(0_u64)];
    let report = launch(&module.function(Some("k")).unwrap(), config, &args).unwrap();
    (buffer.to_vec(), report.cached)
}

/// What the entry should write.
fn expected() -> Vec<u8> {
    let neighbour = |t: u32| if (t ^ 1) & 1 == t & 1 { t } else { t ^ 1 };
    let value = |t: u32| if t & 3 == 1 { 2 * neighbour(t) } else { neighbour(t) };
    (0..72).flat_map(|t| (value(t) + value(neighbour(t))).reverse_bits().to_le_bytes()).collect()
}

fn trap(module: &Module, config: &LaunchConfig) -> String {
    let buffer = module.device().zeroed(4 * 72).unwrap();
    let args = [Arg::from(&buffer), Arg::from(0x30_u64)];
    match launch(&module.function(Some("k")).unwrap(), config, &args) {
        Err(LaunchError::Trap(report)) => report.json(),
        other => panic!("{other:?}"),
    }
}

fn counts(cache: &CodeCache) -> (u64, u64, u64) {
    let CacheCounts { compiled, shared, loaded, .. } = cache.counts();
    (compiled, shared, loaded)
}

#[test]
fn another_process_compiles_nothing() {
    for backend in backends() {
        let folder = Folder::new(&format!("another-{}", backend.name()));
        let (first, second) = (folder.fresh(), folder.fresh());
        let config = config(backend);
        let module = load(&first, TEXT);
        assert_eq!(run(&module, &config), (expected(), false), "{backend:?}");
        let told = trap(&module, &config);
        let made = counts(&first).0;
        assert!(made >= 1 && folder.files().len() as u64 == made, "{made}");

        let module = load(&second, TEXT);
        assert_eq!(run(&module, &config), (expected(), true), "{backend:?}");
        assert_eq!(trap(&module, &config), told);
        assert_eq!(counts(&second), (0, 0, made), "{backend:?}");
        // Also what is said of it.
        let compiled = |m: &Module| m.function(Some("k")).unwrap().compile(&config).unwrap();
        let (a, b) = (compiled(&load(&first, TEXT)), compiled(&module));
        assert_eq!((a.cached, b.cached, a.backend, a.refused), (false, true, b.backend, b.refused));
    }
}

#[test]
fn what_differs_is_made_anew() {
    let folder = Folder::new("differs");
    let base = config(Backend::Cranelift);
    run(&load(&folder.fresh(), TEXT), &base);
    let found = |text: &str, config: &LaunchConfig| {
        let cache = folder.fresh();
        let module = load(&cache, text);
        let compiled = module.function(Some("k")).unwrap().compile(config).unwrap();
        assert_eq!(counts(&cache).2 > 0, compiled.cached);
        compiled.cached
    };
    assert!(found(TEXT, &base));
    assert!(found(&format!("{TEXT}\n// other words after it"), &base), "what the entry is made from is the same");
    assert!(!found(&TEXT.replace("shl.b32 %r2, %r1, 1", "shl.b32 %r2, %r1, 2"), &base), "a function that it calls");
    assert!(!found(&TEXT.replace("xor.b32 %r4, %r2, 4", "xor.b32 %r4, %r2, 8"), &base));
    assert!(!found(&TEXT.replace(".visible .entry k", "  .visible .entry k"), &base), "places of statements");
    assert!(!found(&TEXT.replace(".global .u32 counter;", ".global .u32 counter = 1;"), &base), "variables");
    let with = |change: fn(&mut LaunchConfig)| {
        let mut config = base.clone();
        change(&mut config);
        config
    };
    assert!(!found(TEXT, &with(|c| c.bounds = Bounds::Contained)));
    assert!(!found(TEXT, &with(|c| c.block = [64, 1, 1])));
    assert!(!found(TEXT, &with(|c| c.backend = Backend::Wide)));
    assert!(found(TEXT, &with(|c| (c.grid, c.seed, c.threads) = ([7, 1, 1], 3, 2))), "code does not depend on these");
    // Another build of the program.
    let other = CodeCache::new(Some(folder.store().of_build(Digest::of(&"another build"))));
    assert_eq!(run(&load(&other, TEXT), &base), (expected(), false));
}

#[test]
fn damaged_files_are_made_anew() {
    for backend in backends() {
        let folder = Folder::new(&format!("damaged-{}", backend.name()));
        let config = config(backend);
        run(&load(&folder.fresh(), TEXT), &config);
        let files = folder.files();
        let damage: [fn(&mut Vec<u8>); 4] = [
            |b| b.truncate(b.len() / 2),
            |b| b.clear(),
            |b| {
                let middle = b.len() / 2;
                b[middle] ^= 0x10;
            },
            |b| b.push(0),
        ];
        for change in damage {
            for file in &files {
                let mut bytes = fs::read(file).unwrap();
                change(&mut bytes);
                fs::write(file, bytes).unwrap();
            }
            let cache = folder.fresh();
            assert_eq!(run(&load(&cache, TEXT), &config), (expected(), false));
            assert_eq!(counts(&cache).2, 0);
            // It was mended by that.
            assert_eq!(run(&load(&folder.fresh(), TEXT), &config), (expected(), true));
        }
    }
}

#[test]
fn bytes_that_are_no_code_are_not_taken() {
    // Under a right head: what another process of this build could only have written by a fault of ours.
    let folder = Folder::new("bytes");
    let config = config(Backend::Cranelift);
    let keys = {
        let seen = folder.fresh();
        run(&load(&seen, TEXT), &config);
        folder.files()
    };
    let store = folder.store();
    for file in keys {
        // The key stands in the head.
        let head = fs::read(&file).unwrap();
        let body = &head[56..];
        for n in [0, 1, 2, body.len() / 3, body.len() - 1] {
            store.put(Digest::from_bytes(head[24..40].try_into().unwrap()), &body[..n]);
            let cache = folder.fresh();
            assert_eq!(run(&load(&cache, TEXT), &config).0, expected(), "{n} bytes");
        }
    }
}

#[test]
fn modules_of_one_text_share_code() {
    let cache = CodeCache::default();
    let device = Device::with_code(&cache).unwrap();
    let config = config(Backend::of_environment());
    let modules: Vec<Module> = (0..3).map(|_| Module::from_text(&device, "k.ptx", TEXT).unwrap()).collect();
    assert_eq!(counts(&cache), (0, 0, 0), "loading compiles nothing");
    for module in &modules {
        assert_eq!(run(module, &config), (expected(), false));
        // Each has variables of its own.
        assert_eq!(module.read_global("counter").unwrap(), 144_u32.to_le_bytes());
    }
    let (compiled, shared, _) = counts(&cache);
    assert_eq!(shared, 2);
    drop(modules);
    let module = Module::from_text(&device, "again.ptx", TEXT).unwrap();
    assert_eq!(run(&module, &config), (expected(), false));
    assert!(trap(&module, &config).contains("again.ptx"), "reports name the file of the module that runs");
    let other = module.function(Some("other")).unwrap().compile(&config).unwrap();
    assert!(other.code_bytes > 0);
    assert!(counts(&cache).0 <= compiled + 2, "{:?}", cache.counts());
}

#[test]
fn a_launch_compiles_its_own_entry_alone() {
    let cache = CodeCache::default();
    let module = load(&cache, TEXT);
    let config = config(Backend::Cranelift);
    let buffer = module.device().zeroed(4).unwrap();
    let _ = launch(&module.function(Some("other")).unwrap(), &config, &[Arg::from(&buffer)]).unwrap();
    assert_eq!(counts(&cache), (1, 0, 0));
}

#[test]
fn many_threads_at_once_compile_once() {
    let folder = Folder::new("threads");
    let cache = folder.fresh();
    let config = config(Backend::of_environment());
    let device = Device::with_code(&cache).unwrap();
    let modules: Vec<Module> = (0..16).map(|_| Module::from_text(&device, "k.ptx", TEXT).unwrap()).collect();
    let barrier = Barrier::new(modules.len());
    thread::scope(|s| {
        for module in &modules {
            s.spawn(|| {
                barrier.wait();
                assert_eq!(run(module, &config).0, expected());
            });
        }
    });
    let (made, shared, _) = counts(&cache);
    assert_eq!((made, shared), (folder.files().len() as u64, 15), "each piece of code was made once");
    // With nothing in common but the folder: a device takes a window of addresses, so there are a few.
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let cache = folder.fresh();
                assert_eq!(run(&load(&cache, TEXT), &config), (expected(), true));
                assert_eq!(counts(&cache), (0, 0, made));
            });
        }
    });
}
