//! Images that NVIDIA's tools made (`tests/images/make.py`), and what they hold by those tools' own account.

use std::path::Path;

use handloom_images::{Arch, Choice, Fault, Image, MemberKind, Packing, Part, Want, What, choose, open, parts};

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/images").join(name)).unwrap()
}

fn arch(name: &str) -> Arch {
    name.parse().unwrap()
}

#[track_caller]
fn taken(image: &Image<'_>, want: Want) -> Vec<Part> {
    parts(image, want).unwrap().parts
}

/// Names of the entries of a text, by its lines.
fn entries(ptx: &str) -> Vec<&str> {
    let lines = ptx.lines().filter_map(|l| l.split_once(".entry "));
    lines.map(|(_, name)| name.trim_end_matches(['(', ' '])).collect()
}

/// A text without comments and blanks, which the tools drop.
fn words(ptx: &str) -> Vec<&str> {
    ptx.lines().flat_map(|l| l.split("//").next().unwrap_or_default().split_whitespace()).collect()
}

#[test]
fn fat_binaries_hold_what_the_compiler_writes() {
    for (name, packing) in [("raw", Packing::None), ("lz4", Packing::Lz4), ("zstd", Packing::Zstd)] {
        let bytes = sample(&format!("{name}.fatbin"));
        let image = open(&bytes).unwrap();
        assert_eq!(image.what, What::Fatbin);
        let listed: Vec<_> = image.members.iter().map(|m| (m.kind, m.arch.unwrap().to_string())).collect();
        let ptx = |a: &str| (MemberKind::Ptx, a.to_owned());
        let cubin = (MemberKind::Cubin, "sm_75".to_owned());
        assert_eq!(listed, [cubin, ptx("sm_75"), ptx("sm_90a"), ptx("sm_100f")]);
        for member in &image.members[1..] {
            assert_eq!((member.packing, member.version), (packing, (9, 5)), "{name}");
        }
        for (number, target) in [(2, "75"), (3, "90a"), (4, "100f")] {
            let written = String::from_utf8(sample(&format!("saxpy.compute_{target}.ptx"))).unwrap();
            for want in [Want::Member(number), Want::Target(arch(target))] {
                let [part] = &taken(&image, want)[..] else { panic!("{name}: {want:?}") };
                assert_eq!(words(&part.ptx), words(&written), "{name}: {want:?}");
                assert_eq!((part.member, part.arch), (number, Some(arch(target))));
            }
        }
    }
}

#[test]
fn devices_choose_what_runs_on_them() {
    let bytes = sample("zstd.fatbin");
    let image = open(&bytes).unwrap();
    for (capability, choice) in [
        (50, Choice::Other(1)),
        (75, Choice::Runs(1)),
        (89, Choice::Runs(1)),
        (90, Choice::Runs(2)),
        (100, Choice::Runs(3)),
        (103, Choice::Runs(3)),
        (120, Choice::Runs(1)),
    ] {
        assert_eq!(choose(&image.members, capability), Some(choice), "{capability}");
    }
    assert_eq!(taken(&image, Want::Capability(89))[0].others, [arch("90a"), arch("100f")]);
    assert_eq!(choose(&[], 89), None);
}

#[test]
fn options_and_sources_are_read() {
    let bytes = sample("lineinfo.fatbin");
    let image = open(&bytes).unwrap();
    let [member] = &image.members[..] else { panic!() };
    assert_eq!(member.options.as_deref(), Some("--generate-line-info"));
    assert_eq!(member.source.as_deref(), Some("saxpy.cu"));
    assert!(!member.is_relocatable());
    assert!(taken(&image, Want::Capability(89))[0].ptx.contains(".loc"));
}

#[test]
fn cubins_keep_their_ptx_for_debuggers() {
    for (name, target) in [("lineinfo", "80"), ("debug", "80"), ("lineinfo.sm_100a", "100a")] {
        let bytes = sample(&format!("{name}.cubin"));
        let image = open(&bytes).unwrap();
        assert_eq!(image.what, What::Cubin);
        assert_eq!(image.members[0].arch.unwrap().sm, arch(target).sm);
        let [part] = &taken(&image, Want::Capability(89))[..] else { panic!("{name}") };
        assert_eq!(part.arch, Some(arch(target)), "{name}");
        assert_eq!(part.section.as_deref(), Some(".nv_debug_ptx_txt"));
        assert_eq!(entries(&part.ptx), ["_Z5saxpyifPKfPf"]);
        assert!(part.ptx.lines().count() > 30 && !part.ptx.contains('\0'));
    }
    for name in ["plain.cubin", "sass.fatbin", "lto.fatbin"] {
        let bytes = sample(name);
        let image = open(&bytes).unwrap();
        assert_eq!(image.members.len(), 1);
        assert_eq!(taken(&image, Want::Capability(89)), [], "{name}");
        let wrong = parts(&image, Want::Member(1)).unwrap_err();
        assert!(
            matches!(&wrong, Fault::NoMember { wanted, .. } if wanted.starts_with("PTX in member 1, which is")),
            "{wrong}"
        );
    }
}

#[test]
fn cubins_of_a_fat_binary_are_second_choice() {
    let bytes = sample("cubins.fatbin");
    let image = open(&bytes).unwrap();
    for (capability, member) in [(80, 1), (89, 1), (90, 2), (120, 2)] {
        assert_eq!(taken(&image, Want::Capability(capability))[0].member, member, "{capability}");
    }
}

#[test]
fn parts_of_programs() {
    let (first, scales) = ("_Z5firstPi", ["_ZN2ns5scaleIfEEvPT_", "_ZN2ns5scaleIiEEvPT_"]);
    for (name, what, modules) in [
        ("first.o", What::Object, &[&[first][..]][..]),
        ("second.o", What::Object, &[&scales]),
        ("second.so", What::Program, &[&scales]),
        ("two", What::Program, &[&[first], &scales]),
        ("two.a", What::Archive, &[&[first], &scales]),
    ] {
        let bytes = sample(name);
        let image = open(&bytes).unwrap();
        assert_eq!(image.what, what, "{name}");
        let found = taken(&image, Want::Capability(89));
        let names: Vec<Vec<&str>> = found.iter().map(|p| entries(&p.ptx)).collect();
        assert_eq!(names, modules.iter().map(|m| m.to_vec()).collect::<Vec<_>>(), "{name}");
        assert!(found.iter().all(|p| !p.relocatable && p.arch == Some(arch("80"))), "{name}");
        assert_eq!(taken(&image, Want::Target(arch("80"))).len(), modules.len());
        assert!(matches!(parts(&image, Want::Target(arch("90"))), Err(Fault::NoMember { .. })));
    }
    let bytes = sample("two.a");
    let files: Vec<_> = open(&bytes).unwrap().members.iter().map(|m| m.place.file.clone().unwrap()).collect();
    assert_eq!(files, ["first.o", "first.o", "second.o", "second.o"]);
}

#[test]
fn parts_that_want_linking_say_so() {
    for name in ["linked", "linked.cubin"] {
        let bytes = sample(name);
        let found = taken(&open(&bytes).unwrap(), Want::Capability(89));
        assert_eq!(found.len(), 2, "{name}");
        assert!(found.iter().all(|p| p.relocatable), "{name}");
        assert!(found[0].ptx.contains(".extern .func") && found[1].ptx.contains("_Z5twicei"), "{name}");
    }
}

#[test]
fn what_is_no_image_is_named() {
    let what = |name: &str| open(&sample(name)).unwrap().what;
    for (name, words) in [("saxpy.cu", "CUDA C++"), ("make.py", "Python")] {
        assert_eq!(what(name).words(), words);
    }
    assert!(what("nvvm.ltoir").words().contains("-ltoir"));
    assert_eq!(what("saxpy.compute_75.ptx"), What::Ptx);
}
