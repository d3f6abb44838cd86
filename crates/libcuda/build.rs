//! Writes the exported functions and the table of names from `api/driver.txt`.

use std::fmt::Write;
use std::path::Path;

/// A row of the table.
struct Row<'t> {
    symbol: &'t str,
    since: u32,
    twin: Option<&'t str>,
    works: Option<&'t str>,
    params: &'t str,
}

fn main() {
    println!("cargo::rerun-if-changed=api/driver.txt");
    println!("cargo::rerun-if-changed=build.rs");
    let table = std::fs::read_to_string("api/driver.txt").expect("the table can be read");
    let rows = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row);
    let mut out = String::new();
    let mut names = String::new();
    for (i, row) in rows.enumerate() {
        functions(&mut out, i, &row);
        let base = base(row.symbol);
        let (works, twin) = (row.works.is_some(), row.twin.map(|t| format!("{}_{t}", row.symbol)));
        let twin = twin.map_or("None".to_owned(), |t| format!("Some((\"{t}\", Symbol({t} as *const ())))"));
        let symbol = row.symbol;
        let since = row.since;
        let params = row.params;
        let _ = writeln!(
            names,
            "    Row {{ name: \"{base}\", symbol: \"{symbol}\", since: {since}, works: {works}, twin: {twin}, address: Symbol({symbol} as *const ()), params: \"{params}\" }},"
        );
    }
    let _ = writeln!(out, "/// All rows, by name.\npub static ROWS: &[Row] = &[\n{names}];");
    let folder = std::env::var("OUT_DIR").expect("cargo names a folder");
    std::fs::write(Path::new(&folder).join("exports.rs"), out).expect("the exports can be written");
}

/// `symbol since twin works | parameters`.
fn row(line: &str) -> Row<'_> {
    let (words, params) = line.split_once('|').unwrap_or_else(|| panic!("no parameters: {line}"));
    let words: Vec<&str> = words.split_whitespace().collect();
    let [symbol, since, twin, works] = words[..] else { panic!("four words expected: {line}") };
    let some = |word| Some(word).filter(|w| *w != "-");
    let since = since.parse().unwrap_or_else(|_| panic!("no version: {line}"));
    Row { symbol, since, twin: some(twin), works: some(works), params: params.trim() }
}

/// The documented name of a symbol.
fn base(symbol: &str) -> &str {
    match symbol.rsplit_once("_v") {
        Some((name, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => symbol,
    }
}

fn functions(out: &mut String, i: usize, row: &Row<'_>) {
    for twin in std::iter::once(None).chain(row.twin.map(Some)) {
        let symbol = twin.map_or(row.symbol.to_owned(), |t| format!("{}_{t}", row.symbol));
        let _ = writeln!(out, "/// The C function of its name.");
        let Some(works) = row.works else {
            let _ = writeln!(
                out,
                "#[unsafe(no_mangle)]\npub extern \"C\" fn {symbol}() -> u32 {{ crate::call::missing({i}) }}"
            );
            continue;
        };
        let params: Vec<(String, String)> =
            params(row.params).iter().enumerate().map(|(n, p)| (format!("a{n}"), param(p))).collect();
        let list: Vec<String> = params.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        let mut args: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
        if row.twin.is_some() {
            args.insert(0, if twin.is_some() { "Null::PerThread" } else { "Null::Legacy" });
        }
        let work = match &args[..] {
            [] => format!("crate::{works}"),
            _ => format!("|| crate::{works}({})", args.join(", ")),
        };
        let _ = writeln!(
            out,
            "/// # Safety\n/// Pointers are null or as the documentation of the function asks for.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({}) -> u32 {{ crate::call::call({i}, {work}) }}",
            list.join(", ")
        );
    }
}

fn params(list: &str) -> Vec<&str> {
    if list.is_empty() || list == "void" { Vec::new() } else { list.split(',').map(str::trim).collect() }
}

/// The Rust type of a parameter.
fn param(text: &str) -> String {
    let at = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    let ty = &text[..at];
    let stars = ty.matches('*').count();
    let is_const = ty.contains("const ");
    let base = ty.replace('*', "").replace("const ", "");
    let base = base.trim();
    let value = match base {
        "unsigned int" | "uint32_t" | "cuuint32_t" => "u32",
        "int" | "CUdevice" | "CUdevice_v1" => "i32",
        "size_t" | "unsigned long long" | "cuuint64_t" | "CUdeviceptr" | "CUdeviceptr_v2" | "unsigned long" => "u64",
        "unsigned char" | "char" => "u8",
        "unsigned short" => "u16",
        "float" => "f32",
        "void" | "CUstreamAttrValue" => "()",
        "CUcontext"
        | "CUmodule"
        | "CUfunction"
        | "CUstream"
        | "CUevent"
        | "CUlibrary"
        | "CUkernel"
        | "CUlinkState"
        | "CUgraph"
        | "CUgraphNode"
        | "CUgraphExec"
        | "CUmemoryPool"
        | "CUarray"
        | "CUmipmappedArray"
        | "CUtexObject"
        | "CUsurfObject"
        | "CUgreenCtx"
        | "CUuserObject"
        | "CUtexref"
        | "CUsurfref"
        | "CUgraphConditionalHandle" => "u64",
        "CUuuid" => "[u8; 16]",
        "CUhostFn" => "Option<crate::abi::HostFn>",
        "CUstreamCallback" => "Option<crate::abi::StreamCallback>",
        "CUoccupancyB2DSize" => "Option<crate::abi::BlockToShared>",
        "CUdevprop" | "CUdevprop_v1" => "crate::abi::DevProp",
        "CUctxCreateParams" | "CUexecAffinityParam" => "u8",
        "CUmemAccessDesc" | "CUmemAccessDesc_v1" => "crate::abi::AccessDesc",
        "CUmemAllocationProp" => "crate::abi::AllocationProp",
        "CUmemGenericAllocationHandle" => "u64",
        "CUipcMemHandle" | "CUipcEventHandle" | "CUmemPoolPtrExportData" => "crate::abi::IpcHandle",
        "CUDA_LAUNCH_PARAMS" => "crate::abi::LaunchParams",
        "CUlaunchConfig" => "crate::abi::LaunchConfig",
        "CUtensorMap" => "[u8; handloom_driver::tensor_map::SIZE]",
        "CUDA_ARRAY_DESCRIPTOR" => "crate::abi::ArrayDescriptor",
        "CUDA_ARRAY_MEMORY_REQUIREMENTS" | "CUDA_ARRAY_SPARSE_PROPERTIES" => "u64",
        "CUDA_ARRAY3D_DESCRIPTOR" => "crate::abi::ArrayDescriptor3d",
        "CUDA_RESOURCE_DESC" => "crate::abi::ResourceDesc",
        "CUDA_TEXTURE_DESC" => "crate::abi::TextureDesc",
        "CUDA_RESOURCE_VIEW_DESC" => "crate::abi::ViewDesc",
        "CUDA_MEMCPY2D" | "CUDA_MEMCPY2D_v2" => "crate::abi::Memcpy2d",
        "CUDA_MEMCPY3D" | "CUDA_MEMCPY3D_v2" => "crate::abi::Memcpy3d",
        "CUDA_MEMCPY3D_PEER" | "CUDA_MEMCPY3D_PEER_v1" => "crate::abi::Memcpy3dPeer",
        "CUDA_KERNEL_NODE_PARAMS" | "CUDA_KERNEL_NODE_PARAMS_v2" => "crate::abi::KernelNode",
        "CUDA_KERNEL_NODE_PARAMS_v1" => "crate::abi::KernelNodeOld",
        "CUDA_MEMSET_NODE_PARAMS" | "CUDA_MEMSET_NODE_PARAMS_v1" => "crate::abi::MemsetNode",
        "CUDA_HOST_NODE_PARAMS" | "CUDA_HOST_NODE_PARAMS_v1" => "crate::abi::HostNode",
        "CUDA_MEM_ALLOC_NODE_PARAMS" => "crate::abi::MemAllocNode",
        "CUDA_BATCH_MEM_OP_NODE_PARAMS" => "crate::abi::BatchNode",
        "CUstreamBatchMemOpParams" => "crate::abi::BatchOp",
        "CUmemcpyAttributes" => "crate::abi::CopyAttributes",
        "CUDA_MEMCPY3D_BATCH_OP" => "crate::abi::CopyOp",
        "CUgraphNodeParams" => "crate::abi::NodeParams",
        "CUkernelNodeAttrValue" => "()",
        "CUDA_GRAPH_INSTANTIATE_PARAMS" => "crate::abi::InstantiateParams",
        "CUgraphExecUpdateResultInfo" | "CUgraphExecUpdateResultInfo_v1" => "crate::abi::UpdateResult",
        "CUmemPoolProps" | "CUmemPoolProps_v1" => "crate::abi::PoolProps",
        "CUgraphEdgeData" => "u64",
        "CUmemLocation" | "CUmemLocation_v1" => "crate::abi::PlaceWords",
        _ => "u32",
    };
    match (stars, is_const) {
        (0, _) => value.to_owned(),
        (1, _) if value == "()" => "Addr".to_owned(),
        (1, true) => format!("In<{value}>"),
        (1, false) => format!("Out<{value}>"),
        _ => "Out<u64>".to_owned(),
    }
}
