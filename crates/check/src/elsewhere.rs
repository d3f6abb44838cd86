//! What runs on GPUs and not here, and the way around it: functions of the CUDA device runtime, and instructions that compilers
//! write for new targets only.

use handloom_diag::{Code, Diagnostic, Span};

/// Beginnings of the names of the device runtime's functions that start kernels or prepare their start.
const LAUNCHES: &[&str] = &["LaunchDevice", "GetParameterBuffer", "GraphLaunch"];

/// The other functions of the device runtime, by the beginnings of their names.
const FUNCTIONS: &[&str] = &[
    "DeviceGet",
    "DeviceSynchronize",
    "Event",
    "Free",
    "FuncGetAttributes",
    "GetDevice",
    "GetErrorName",
    "GetErrorString",
    "GetLastError",
    "GraphKernelNode",
    "GetCurrentGraphExec",
    "Malloc",
    "Memcpy",
    "Memset",
    "Occupancy",
    "PeekAtLastError",
    "RuntimeGetVersion",
    "SetDevice",
    "Stream",
];

/// What its names begin with: the second is that of CUDA 12 and newer.
const PREFIXES: &[&str] = &["cuda", "__cudaCDP2", "__cuda"];

const LAUNCH_HELP: &str = "start the kernel from the host: with `run --job`, or compile without device-side launches";
const OTHER_HELP: &str = "device code can call `malloc`, `free`, `printf` and `assert`; do the rest on the host";

/// An error if a function that no module defines is of the device runtime.
pub(crate) fn device_runtime(name: &str, span: Span) -> Option<Diagnostic> {
    let rests = || PREFIXES.iter().filter_map(|p| name.strip_prefix(p));
    let is_of = |table: &[&str]| rests().any(|rest| table.iter().any(|begin| rest.starts_with(begin)));
    let (what, help) = match () {
        () if is_of(LAUNCHES) => ("a kernel that starts kernels", LAUNCH_HELP),
        () if is_of(FUNCTIONS) => ("the CUDA runtime in device code", OTHER_HELP),
        () => return None,
    };
    let message = format!("{what} is not supported yet: `{name}`");
    Some(Diagnostic::unsupported(Code::Unsupported, span, "call", message).help(help))
}

/// Instructions by the beginnings of their words, with what to do so that others are there instead.
const TARGETS: &[(&[&str], &str)] =
    &[(&["wmma."], "leave `.satfinite` out: versions of PTX from 6.5 on do not have it with floats")];

/// What to do where an instruction does not run.
pub(crate) fn target_without(words: &str) -> Option<&'static str> {
    TARGETS.iter().find(|(begins, _)| begins.iter().any(|b| words.starts_with(b))).map(|(_, help)| *help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use handloom_isa::form::Semantics;

    #[test]
    fn names_of_the_device_runtime() {
        let launches =
            ["cudaLaunchDevice", "cudaLaunchDeviceV2_ptsz", "__cudaCDP2LaunchDeviceV2", "__cudaCDP2GetParameterBuffer"];
        let others = [
            "cudaGetParameterBufferV2",
            "cudaStreamCreateWithFlags",
            "cudaDeviceSynchronize",
            "__cudaDeviceSynchronizeDeprecationAvoidance",
        ];
        for name in launches.iter().chain(&others) {
            assert!(device_runtime(name, Span::NONE).is_some(), "{name}");
        }
        assert!(device_runtime(launches[0], Span::NONE).unwrap().message.contains("starts kernels"));
        for name in [
            "cudaCGSynchronize",
            "cudaCGGetIntrinsicHandle",
            "cudaGraphSetConditional",
            "cudaMine",
            "cuda",
            "vprintf",
            "Stream",
        ] {
            assert!(device_runtime(name, Span::NONE).is_none(), "{name}");
        }
    }

    #[test]
    fn each_tensor_instruction_that_does_not_run_has_a_way_around() {
        let unsupported = handloom_isa::forms().iter().filter(|f| matches!(f.semantics, Semantics::Unsupported(_)));
        let tensor =
            |section: &str| ["matrix", "Matrix", "tensor", "TensorCore", "bulk"].iter().any(|w| section.contains(w));
        let of_tensors: Vec<_> = unsupported.filter(|f| tensor(f.section) && !f.section.contains("Texture")).collect();
        assert!(!of_tensors.is_empty());
        for f in of_tensors {
            let words = format!("{}{}", f.opcode, f.words.concat());
            assert!(target_without(&format!("{words}.")).is_some(), "{words}: {}", f.section);
        }
    }
}
