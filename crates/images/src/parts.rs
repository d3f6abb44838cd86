//! The modules that a file comes to: one of each container, because containers are different code, and members of one container
//! the same code for several architectures.

use crate::choose::{Choice, candidates, choose};
use crate::{Arch, Fault, Image, Member, MemberKind, elf};

/// Which member of each container is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// What a device of this capability takes (ten times major, plus minor).
    Capability(u32),
    /// The one for this architecture.
    Target(Arch),
    /// This one alone, by its number from 1.
    Member(usize),
}

/// A module in PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The text.
    pub ptx: String,
    /// Number of the member from 1.
    pub member: usize,
    /// The section of a cubin that it was found in.
    pub section: Option<String>,
    /// Its architecture.
    pub arch: Option<Arch>,
    /// Whether it is to be linked with the other parts of the file.
    pub relocatable: bool,
    /// No PTX of its container runs on a device of the capability.
    pub is_other: bool,
    /// Architectures of the other members with PTX that might have been taken instead.
    pub others: Vec<Arch>,
}

/// What a file comes to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// The modules in the order of the file.
    pub parts: Vec<Part>,
    /// The CUDA device runtime was among them and was left out: its functions are the host's to provide.
    pub device_runtime: bool,
}

/// Takes the modules out of an image.
///
/// # Errors
/// A member is damaged, or there is none as wanted.
pub fn parts(image: &Image<'_>, want: Want) -> Result<Parts, Fault> {
    let mut out = Parts::default();
    if let Want::Member(number) = want {
        let member = number.checked_sub(1).and_then(|i| image.members.get(i));
        let member = member.ok_or_else(|| no_member(format!("member {number}"), image))?;
        take(member, number, &mut out)?;
        if out.parts.is_empty() {
            return Err(no_member(format!("PTX in member {number}, which is {}", a_kind(member.kind)), image));
        }
        return Ok(out);
    }
    let mut first = 0;
    for container in image.members.chunk_by(|a, b| a.place.container == b.place.container) {
        let chosen = match want {
            Want::Capability(c) => choose(container, c),
            Want::Target(arch) => exactly(container, arch).map(Choice::Runs),
            Want::Member(_) => None,
        };
        if let Some(choice) = chosen {
            let from = out.parts.len();
            take(&container[choice.index()], first + choice.index() + 1, &mut out)?;
            let others: Vec<Arch> =
                candidates(container).into_iter().filter(|(i, _)| *i != choice.index()).map(|(_, a)| a).collect();
            for part in out.parts.iter_mut().skip(from) {
                part.is_other = matches!(choice, Choice::Other(_));
                part.others.clone_from(&others);
            }
            let known = out.parts.len();
            out.parts.retain(|p| p.member <= first || !is_device_runtime(&p.ptx));
            out.device_runtime |= out.parts.len() < known;
        }
        first += container.len();
    }
    drop_linked(image, &mut out.parts);
    if let (Want::Target(arch), true) = (want, out.parts.is_empty()) {
        return Err(no_member(format!("PTX for {arch}"), image));
    }
    Ok(out)
}

fn take(member: &Member<'_>, number: usize, out: &mut Parts) -> Result<(), Fault> {
    let texts = member.texts(number)?;
    // A cubin with several texts was linked from as many modules.
    let relocatable = member.is_relocatable() || texts.len() > 1;
    out.parts.extend(texts.into_iter().map(|text| Part {
        arch: Arch::of_ptx(&text.ptx).or(member.arch),
        ptx: text.ptx,
        member: number,
        section: text.section,
        relocatable,
        is_other: false,
        others: Vec::new(),
    }));
    Ok(())
}

/// A program that was linked from several modules holds their code again, as one cubin that the linker made: what goes there in is
/// dropped where the modules themselves are at hand.
fn drop_linked(image: &Image<'_>, parts: &mut Vec<Part>) {
    let member = |p: &Part| &image.members[p.member - 1];
    let of_linking = |p: &Part| member(p).place.section.as_deref() == Some(elf::RELOCATABLE);
    let files: Vec<_> = parts.iter().filter(|p| of_linking(p)).map(|p| member(p).place.file.clone()).collect();
    parts.retain(|p| of_linking(p) || member(p).kind != MemberKind::Cubin || !files.contains(&member(p).place.file));
}

/// The member for an architecture; without a suffix, one with a suffix serves where there is no other.
fn exactly(container: &[Member<'_>], arch: Arch) -> Option<usize> {
    let all = candidates(container);
    let same = |(_, a): &&(usize, Arch)| *a == arch;
    let near = |(_, a): &&(usize, Arch)| a.sm == arch.sm && arch.bound == crate::arch::Bound::None;
    all.iter().find(same).or_else(|| all.iter().find(near)).map(|(i, _)| *i)
}

/// Whether a module is the CUDA device runtime, which programs with device-side launches are linked with.
fn is_device_runtime(ptx: &str) -> bool {
    const OF_IT: &str = "cudaLaunchDevice";
    ptx.lines().any(|l| l.starts_with(".visible .func") && l.contains(OF_IT))
}

fn a_kind(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::Ptx => "PTX",
        MemberKind::Cubin => "a cubin compiled without `-lineinfo`",
        MemberKind::LtoIr => "intermediate code of `-dlto`",
        MemberKind::Other(_) => "of an unknown kind",
    }
}

fn no_member(wanted: String, image: &Image<'_>) -> Fault {
    let all = image.members.iter().enumerate().map(|(i, m)| {
        let arch = m.arch.map_or(String::new(), |a| format!(" for {a}"));
        format!("member {}, {}{arch}", i + 1, m.kind.words())
    });
    let all: Vec<String> = all.collect();
    let have = if all.is_empty() { "no member at all".to_owned() } else { all.join("; ") };
    Fault::NoMember { wanted, have }
}
