//! One test of bounds for accesses of a block through one address register, where all lanes execute the block.
//!
//! It stands before the first of them and covers the lowest to the highest byte of all lanes. A bit of `r15` says whether it passed; each access
//! then goes around its own tests. Where it did not pass, each access is tested by itself, so a report is the same.

use handloom_ir::simt::{Inst, Op, Reg, Val};
use handloom_ir::types::{Order, StateSpace};
use handloom_plan::access::{AccessClass, Kind};
use iced_x86::{Code, Register};

use crate::access::{Access, Joints, Member};
use crate::asm::{Label, Mem};
use crate::emit::*;
use crate::head::DECIDED;

/// What accesses that are tested together have in common: the address, the space, what they do, and their bytes.
type Key = (Reg, StateSpace, Kind, i64);

/// The register of the bits.
const PASSED: Register = Register::R15D;

impl Emit<'_> {
    /// Finds the accesses of a block that are tested together.
    pub(crate) fn joints(&self, insts: &[Inst]) -> Joints {
        let mut groups: Vec<(Key, Vec<(usize, i64)>)> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (i, inst) in insts.iter().enumerate() {
            if let Some((key, offset)) = self.joinable(inst) {
                match open.iter().find(|g| groups[**g].0 == key) {
                    Some(g) => groups[*g].1.push((i, offset)),
                    None => {
                        open.push(groups.len());
                        groups.push((key, vec![(i, offset)]));
                    }
                }
            }
            // Another value of the address is another address, and what a built-in function frees is not to be reached.
            if matches!(inst.op, Op::Builtin(_)) {
                open.clear();
            }
            open.retain(|g| !inst.dst.contains(&groups[*g].0.0));
        }
        let mut joints = Joints::new();
        let several = groups.into_iter().filter(|(_, list)| list.len() > 1).take(31);
        for (bit, (_, list)) in (0..).zip(several) {
            let low = list.iter().map(|a| a.1).min().unwrap_or(0);
            let high = list.iter().map(|a| a.1).max().unwrap_or(0);
            for (k, (i, _)) in list.into_iter().enumerate() {
                joints.insert(i, Member { bit: 1 << bit, test: (k == 0).then_some((low, high)) });
            }
        }
        joints
    }

    /// What tells accesses apart that may be tested together, and the offset of one.
    fn joinable(&self, inst: &Inst) -> Option<(Key, i64)> {
        use StateSpace::{Generic, Global, Shared};
        let class = AccessClass::of(inst)?;
        let Val::Reg(r) = class.address else { return None };
        let shape = self.shape(class.address)?;
        let bytes = class.bytes();
        let fits = matches!(class.kind, Kind::Load | Kind::Store)
            && matches!(class.space, Global | Generic | Shared)
            && class.order == Order::Weak
            && !class.is_single
            && !class.is_guarded
            && class.wants_all()
            && shape.is_regular(bytes)
            && class.offset % bytes == 0
            && i32::try_from(class.offset).is_ok();
        fits.then_some(((r, class.space, class.kind, bytes), class.offset))
    }

    /// The start of an access's own tests: the joint one, if the access is the first, and a way around its own. The label is to be bound after
    /// them. Clobbers what tests do, and `rax` if the access is the first of its group.
    pub(crate) fn around_tests(&mut self, x: &Access) -> Option<Label> {
        if !x.may_skip() {
            return None;
        }
        let skip = self.a.label();
        let Some(member) = x.joint else {
            self.skip_if_decided(x, skip);
            return Some(skip);
        };
        match member.test {
            Some((low, high)) => {
                // Others go by the joint test.
                self.skip_if_decided_with(x, member.bit, skip);
                self.joint_test(x, member.bit, low, high);
            }
            None => self.skip_if_decided(x, skip),
        }
        self.a.imm(Code::Test_rm32_imm32, PASSED, member.bit.cast_signed());
        self.a.jump(Code::Jne_rel32_64, skip);
        Some(skip)
    }

    fn skip_if_decided(&mut self, x: &Access, skip: Label) {
        if let Some(bit) = x.decided {
            self.a.imm(Code::Test_rm32_imm32, DECIDED, bit.cast_signed());
            self.a.jump(Code::Jne_rel32_64, skip);
        }
    }

    /// The same for the first of accesses that are tested together, whose bit must tell what those find that nothing is decided of.
    fn skip_if_decided_with(&mut self, x: &Access, member: u32, skip: Label) {
        if x.decided.is_some() {
            self.a.imm(Code::And_rm32_imm32, PASSED, (!member).cast_signed());
            self.skip_if_decided(x, skip);
        }
    }

    /// The end of an access's own tests.
    pub(crate) fn after_tests(&mut self, skip: Option<Label>) {
        if let Some(skip) = skip {
            self.a.bind(skip);
        }
    }

    fn joint_test(&mut self, x: &Access, bit: u32, low: i64, high: i64) {
        let Some(shape) = self.shape(x.class.address) else { return };
        let failed = self.a.label();
        let own = Access { cold: failed, ..*x };
        self.a.imm(Code::And_rm32_imm32, PASSED, (!bit).cast_signed());
        self.limits(&own);
        for g in 0..shape.groups() {
            let (first, last) = shape.span(g);
            self.lane_value(x.class.address, shape.first_lane(g), RAX);
            let by = first + low;
            if x.short {
                self.a.imm(Code::Add_rm32_imm32, EAX, (by.cast_unsigned() as u32).cast_signed());
            } else {
                self.add_number(RAX, by);
            }
            self.test(&own, RAX, false);
            // From the lowest up, without wrapping at 32 bits.
            match i32::try_from(last - first + high - low) {
                Ok(reach) => self.a.op2(Code::Lea_r64_m, RAX, Mem::at(RAX, reach)),
                Err(_) => self.add_number(RAX, last - first + high - low),
            }
            self.test(&own, RAX, true);
        }
        self.a.imm(Code::Or_rm32_imm32, PASSED, bit.cast_signed());
        self.a.bind(failed);
    }
}
