//! A test written out for the command line: the job file and its buffers.

use std::path::Path;

use handloom_check::check_text;
use handloom_diag::FileId;
use handloom_ir::num::image::Kind;
use serde_json::{Value, json};

use super::values::bytes;
use super::{Argument, FileTest, Launch, parse};

/// Writes `NAME.json`, `NAME.ptx` and a file for each buffer into a folder. `handloom run --job` takes them.
///
/// # Errors
/// The test is no `run` or `trap` test, or a file cannot be written.
pub fn write(test: &FileTest, folder: &Path) -> Result<(), String> {
    let d = parse(&test.text)?;
    if d.launches.is_empty() {
        return Err("it launches nothing".into());
    }
    let stem = test.name.replace('/', "-");
    let put = |name: &str, data: &[u8]| {
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(folder.join(name), data))
            .map_err(|e| e.to_string())
    };
    let (mut buffers, mut outputs) = (serde_json::Map::new(), serde_json::Map::new());
    let mut objects = [Kind::Texture, Kind::Sampler, Kind::Surface].map(|_| serde_json::Map::new());
    for o in &d.objects {
        let spec = serde_json::to_value(&o.spec).map_err(|e| e.to_string())?;
        objects[o.kind as usize].insert(d.buffers[o.record].name.clone(), spec);
    }
    for (_, b) in d.buffers.iter().enumerate().filter(|(i, _)| d.objects.iter().all(|o| o.record != *i)) {
        let file = format!("{stem}.{}.bin", b.name);
        put(&file, &bytes(b.elem, &b.init))?;
        buffers.insert(b.name.clone(), json!({ "file": file }));
        outputs.insert(b.name.clone(), Value::String(format!("{stem}.{}.out.bin", b.name)));
    }
    // A module with errors has no launches; its diagnostics are what the job will show.
    let module = check_text(&test.text, FileId(0)).module.map(|m| handloom_lower::lower(&m));
    let launches: Vec<Value> = d
        .launches
        .iter()
        .map(|l| {
            let params = module.as_ref().and_then(|m| m.entries.get(&l.entry)).map(|e| e.params.as_slice());
            launch(l, params.unwrap_or_default(), &d.buffers.iter().map(|b| b.name.as_str()).collect::<Vec<_>>())
        })
        .collect();
    let mut job =
        json!({ "module": format!("{stem}.ptx"), "buffers": buffers, "launches": launches, "outputs": outputs });
    for (key, objects) in ["textures", "samplers", "surfaces"].into_iter().zip(objects).filter(|(_, o)| !o.is_empty()) {
        job[key] = Value::Object(objects);
    }
    put(&format!("{stem}.ptx"), test.text.as_bytes())?;
    let text = serde_json::to_string_pretty(&job).map_err(|e| e.to_string())?;
    put(&format!("{stem}.json"), text.as_bytes())
}

fn launch(l: &Launch, params: &[handloom_ir::simt::Param], names: &[&str]) -> Value {
    let arg = |(i, a): (usize, &Argument)| match a {
        Argument::Buffer(b, 0) => json!({ "buffer": names[*b] }),
        Argument::Buffer(b, offset) => json!({ "buffer": names[*b], "offset": offset }),
        Argument::Literal(text) => json!({ "scalar": scalar(text, params.get(i)) }),
        Argument::Bytes(bytes) => {
            json!({ "bytes": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>() })
        }
    };
    let args: Vec<Value> = l.args.iter().enumerate().map(arg).collect();
    let mut out = json!({ "entry": l.entry, "grid": l.grid, "block": l.block, "shared": l.shared_bytes, "args": args });
    if l.cooperative {
        out["cooperative"] = json!(true);
    }
    if let Some(cluster) = l.cluster {
        out["cluster"] = json!(cluster);
    }
    out
}

/// Bits of a float parameter as the command line writes them.
fn scalar(text: &str, param: Option<&handloom_ir::simt::Param>) -> String {
    match (text.strip_prefix("0x"), param.map(|p| p.ty.name())) {
        (Some(hex), Some(".f32")) => format!("0f{hex:0>8}"),
        (Some(hex), Some(".f64")) => format!("0d{hex:0>16}"),
        _ => text.to_owned(),
    }
}
