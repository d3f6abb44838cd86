"""Modules with vector registers as parameters and results of functions, for `modules.py`."""

# Types of registers that are parameters and results of a function, and what a call passes for them.
COMPONENTS = [".u32", ".v2 .u32", ".v4 .u32", ".v2 .b32", ".v2 .s32", ".v2 .f32", ".v4 .f32", ".v2 .u64", ".v2 .f64", ".v2 .b16", ".v4 .b16", ".v2 .f16", ".v4 .b8",
              ".v2 .pred", ".v4 .f64", ".v2 .b128", ".v8 .u32"]
PASSED = ["t", "5", "t.x", "{x,x}", "_", "t+4", "x"]


def vectors(entry):
    for a in COMPONENTS:
        yield f".func f(.reg {a} a) {{ ret; }}\n{entry}"
        yield f".func (.reg {a} r) f(.reg {a} a, .reg .u32 b) {{ ret; }}\n{entry}"
        yield f".extern .func (.reg {a} r) f(.reg {a} a);\n{entry}"
        yield f".func f(.param {a} a) {{ ret; }}\n{entry}"
        for b in COMPONENTS:
            yield f".func f(.reg {a} a);\n.func f(.reg {b} a) {{ ret; }}\n{entry}"
            if not a.startswith((".v2 .pred", ".v4 .f64", ".v2 .b128", ".v8")) and not b.startswith((".v2 .pred", ".v4 .f64", ".v2 .b128", ".v8")):
                yield f".func f(.reg {a} a) {{ ret; }}\n.visible .entry k() {{ .reg {b} t; call f, (t); ret; }}"
                yield f".func (.reg {a} r) f() {{ ret; }}\n.visible .entry k() {{ .reg {b} t; call (t), f; ret; }}"
    for p in PASSED:
        yield f".func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) {{ ret; }}\n.visible .entry k() {{ .reg .v2 .u32 t, w; .reg .u32 x; call (w), f, ({p}); ret; }}"
        yield f".func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) {{ ret; }}\n.visible .entry k() {{ .reg .v2 .u32 t, w; .reg .u32 x; call ({p}), f, (w); ret; }}"
        yield f".func (.reg .u32 r) f(.reg .u32 a) {{ ret; }}\n.visible .entry k() {{ .reg .u32 t, x; call (x), f, ({p}); ret; }}"
    yield (".func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) { mov.v2.u32 r, a; ret; }\n.visible .entry k() { .reg .v2 .u32 t; .reg .u64 p; "
           "P: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u32 _); mov.u64 p, f; call (t), p, (t), P; ret; }")
