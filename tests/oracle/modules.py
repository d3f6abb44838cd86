#!/usr/bin/env python3
"""Asks NVIDIA's assembler about declarations, directives and whole small modules, and stores its verdicts.

    pip install nvidia-cuda-nvcc            (in a virtual environment outside the tree)
    python3 tests/oracle/modules.py --ptxas PATH/TO/ptxas

`tests/modules.rs` replays them and needs no assembler. The stored file is a zlib stream of text: `v` the assembler's version, then `= VERSION TARGET`
and its modules, one a line, without their first three lines, `\\n` for the ends of lines, behind `+` if accepted and `-` if refused. Modules that only lack a definition, and modules that the assembler crashes on, are left out.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
# Version and target: the first is for all modules, the others are for those of `GATED`.
HEADS = [
    ("9.0", "sm_90"), ("6.3", "sm_75"), ("6.4", "sm_75"), ("7.0", "sm_75"), ("7.1", "sm_80"), ("7.7", "sm_80"), ("7.8", "sm_80"), ("7.8", "sm_90"),
    ("8.0", "sm_90"), ("8.1", "sm_80"), ("8.2", "sm_90"), ("8.3", "sm_75"), ("8.3", "sm_90"), ("8.7", "sm_90"), ("8.8", "sm_90"), ("9.0", "sm_75"),
    ("9.0", "sm_80"), ("3.2", "sm_75"), ("6.2", "sm_75"), ("6.5", "sm_80"), ("7.0", "sm_86"), ("7.7", "sm_90"), ("7.8", "sm_90a"), ("8.5", "sm_100"),
    ("8.6", "sm_100f"), ("8.6", "sm_120"), ("8.7", "sm_103"), ("8.8", "sm_110"), ("8.8", "sm_88"),
]
ENTRY = ".visible .entry k() { ret; }"
G = ".global .b32 g;\n"

LINKING = ['', '.visible ', '.extern ', '.weak ', '.common ', '.visible .extern ', '.visible .visible ', '.weak .visible ']

SPACES = [".global", ".const", ".shared", ".local", ".param", ".reg", ".sreg", ".tex"]

# What stands behind a state space.
VARIABLES = [
    '.b32 x;',
    '.b32 x[4];',
    '.b32 x[];',
    '.b32 x = 1;',
    '.b32 x[2] = {1,2};',
    '.b32 x[] = {1,2,3};',
    '.align 8 .b8 x[8];',
    '.v4 .f32 x;',
    '.b32 x, y;',
    '.b32 x<4>;',
    '.pred x;',
    '.f16 x;',
    '.f16x2 x;',
    '.bf16 x;',
    '.e4m3 x;',
    '.b128 x;',
    '.texref x;',
    '.samplerref x;',
    '.surfref x;',
    '.b8 x[0];',
    '.b32 x[2][3];',
    '.b32 x[][3];',
    '.b32 x[2][];',
    '.b32 x[2][2]={{1,2},{3}};',
    '.b32 x[2]={1,2,3};',
    '.f32 x=1;',
    '.f32 x = 1.5;',
    '.u32 x=1.5;',
    '.u8 x=300;',
    '.s8 x = -129;',
    '.b32 x = {1};',
    '.f64 x = 0f3f800000;',
    '.f32 x=0d3ff0000000000000;',
    '.u64 x = k;',
    '.u32 x = k;',
    '.b8 x = 0xff(k);',
    '.u64 x = generic(g);',
    '.u64 x[2]={g, g+4};',
    '.u64 x = g+4;',
    '.u64 x=g-4;',
    '.u64 x = 4+g;',
    '.b32 x = g;',
    '.b8 x[2] = {0xFF(g), 0xFF00(g)};',
    '.b32 x = 1 ? 2 : 3;',
    '.b32 x = (1,2);',
    '.b32 x = "a";',
    '.b8 x[3] = "ab";',
]

TYPES = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64".split()

ADDRESSES = ["g", "g+4", "generic(g)", "0xFF(g)", "0xFF00(generic(g))", "k", "{g}", "{0xff(g)}"]

# Registers of two types in one vector.
REGISTERS = "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 f32 f64".split()

MIXED = [
    "ld.global.v2.b8 {x, y}, [a];",
    "ld.global.v4.u32 {_, x, y, _}, [a];",
    "st.global.v2.f32 [a], {x, y};",
    "mov.b64 b, {x, y};",
    "mov.b32 {x, y}, c;",
]

# Between the header of a function and its body.
DIRECTIVES = [
    '.maxntid 32',
    '.maxntid 32,2',
    '.maxntid 32,2,2',
    '.maxntid 32,2,2,2',
    '.maxntid 0',
    '.maxntid 2048',
    '.maxntid 32 .maxntid 32',
    '.reqntid 32',
    '.reqntid 32,4,1',
    '.reqntid 0',
    '.maxntid 32 .reqntid 32',
    '.reqntid 32 .maxntid 64',
    '.maxnreg 32',
    '.maxnreg 0',
    '.maxnreg 300',
    '.maxnreg -1',
    '.minnctapersm 2',
    '.maxntid 32 .minnctapersm 2',
    '.minnctapersm 2 .maxntid 32',
    '.maxnctapersm 2',
    '.maxntid 64 .maxnctapersm 1',
    '.noreturn',
    '.pragma "nounroll";',
    '.pragma "x"',
    '.maxclusterrank 4',
    '.reqnctapercluster 2',
    '.reqnctapercluster 2,2,2',
    '.explicitcluster',
    '.explicitcluster .reqnctapercluster 2',
    '.blocksareclusters',
    '.reqntid 32 .reqnctapercluster 2 .blocksareclusters',
    '.explicitcluster .maxclusterrank 4',
    '.reqnctapercluster 2 .maxclusterrank 4',
    '.abi_preserve 4',
    '.abi_preserve_control 2',
    '.maxntid x',
    '.maxntid 1.5',
    '.maxntid',
    '.foo 3',
    '.unified',
    '.attribute(.unified(1,2))',
    '.maxntid 32;',
    '.minnctapersm 0',
    '.maxntid 4294967296',
    '.language "c"',
    '.ptr',
    '.align 4',
    '.alias',
    '.retain',
    '.reqntid 1025',
    '.reqntid 32,32,2',
    '.reqnctapercluster 9',
    '.reqnctapercluster 0',
]

# Lists of parameters.
PARAMETERS = [
    '.param .u32 a',
    '.param .b8 a[12]',
    '.param .align 8 .b8 a[12]',
    '.param .align 3 .b8 a[12]',
    '.param .align 256 .b8 a[12]',
    '.param .b32 a[]',
    '.param .b32 a[0]',
    '.param .b32 a[2][2]',
    '.reg .b32 a',
    '.param .pred a',
    '.param .v4 .f32 a',
    '.param .f16 a',
    '.param .f16x2 a',
    '.param .b128 a',
    '.param .u64 .ptr a',
    '.param .u64 .ptr .global a',
    '.param .u64 .ptr .global .align 16 a',
    '.param .u64 .ptr .align 16 .global a',
    '.param .u64 .ptr .param a',
    '.param .u64 .ptr .shared a',
    '.param .u64 .ptr .local a',
    '.param .u64 .ptr .const a',
    '.param .u64 .ptr .reg a',
    '.param .u32 .ptr .global a',
    '.param .f32 .ptr .global a',
    '.param .b64 .ptr .global a',
    '.param .s64 .ptr .global a',
    '.param .u64 .ptr .global .align 3 a',
    '.param .u64 .ptr .global .align 0 a',
    '.param .u64 .align 8 a',
    '.param .u64 .align 8 .ptr a',
    '.param .u64 .ptr .ptr a',
    '.param .u64 .ptr .generic a',
    '.param .u64 a, .param .u64 a',
    '.param .u64 a, .param .u32 b',
    '.param .u64 a .param .u32 b',
    '.param .u64 a,',
    '.param .u32 a = 3',
    '.param .u32 a<4>',
    '.param .u32 a, b',
    '.param .texref a',
    '.param .u64 .texref a',
    '.param .samplerref a',
    '.param .surfref a',
    '.param .u64 .const a',
    '.param a',
    '.param .u32',
    '.global .u32 a',
    '.shared .u32 a',
    '.u32 a',
    '.param .align 8 .u32 a',
    '.param .b8 a[4097]',
    '.param .b8 a[32764]',
    '.param .b8 a[32765]',
    '.param .b8 a[2000], .param .b8 b[3000]',
    '.param .u32 %a',
    '.param .u32 k',
    '.param .u32 a[2], .param .u32 c',
    '.param .align 16 .u32 a[2]',
    '.param .bf16 a',
    '.param .e4m3x2 a',
    '.param .u32 _',
    '.param .u32 $a',
    '.param .b8 _[8]',
    '.reg .pred a',
    '.reg .b8 a',
    '.reg .v2 .b32 a',
    '.reg .b32 a[2]',
]

# Statements. Those that close the body themselves, or end without a semicolon, stand alone.
BODIES = [
    '.reg .b32 a; .reg .b32 a;',
    '.reg .b32 a; { .reg .b32 a; }',
    '.reg .b32 a, b, c;',
    '.reg .b32 a<3>, b;',
    '.reg .b32 %r<0>;',
    '.reg .b32 %r<-1>;',
    '.reg .b32 %r<4294967296>;',
    '.reg .b32 %r<3>; mov.b32 %r3, 0;',
    '.reg .b32 %r<3>; mov.b32 %r02, 0;',
    '.reg .b32 %r<3>; mov.b32 %r, 0;',
    '.reg .b32 %r<3>; .reg .b32 %r1;',
    '.reg .b32 %r1; .reg .b32 %r<3>;',
    '.reg .b32 %r<3>; .reg .b64 %r<3>;',
    '.reg .b32 %r<3>; .reg .b64 %r<2>;',
    '.reg .b32 r<2>; mov.b32 r1, 3;',
    '.reg .b32 a=1;',
    '.reg .b32 a[4];',
    '.reg .v2 .b32 a; mov.b32 a.x, 1;',
    '.reg .v2 .b32 a; mov.v2.b32 a, {1,2};',
    '.reg .v4 .f32 a<2>; mov.f32 a1.w, 0f00000000;',
    '.reg .v3 .b32 a;',
    '.reg .v2 .b128 a;',
    '.reg .v4 .b64 a;',
    '.reg .v8 .b32 a;',
    '.reg .align 4 .b32 a;',
    '.reg .b8 a;',
    '.reg .b4 a;',
    '.reg .u128 a;',
    '.reg .b128 a;',
    '.reg .f16x2 a;',
    '.reg .bf16 a;',
    '.reg .bf16x2 a;',
    '.reg .tf32 a;',
    '.reg .e4m3 a;',
    '.reg .u8x4 a;',
    '.reg .pred p; @p ret;',
    '.reg .pred p; @!p ret;',
    '.reg .b32 p; @p ret;',
    '.reg .pred p; @p { ret; }',
    '.reg .pred p; @p L: ret;',
    '.reg .pred p; L: @p ret;',
    '.reg .pred p; @p;',
    '.reg .pred p; @p .reg .b32 x;',
    '.reg .pred p; @ p ret;',
    '.reg .pred p; @! p ret;',
    '.reg .pred p; @!!p ret;',
    '@1 ret;',
    '@%p ret;',
    ';',
    ';;ret;',
    'L: L2: ret;',
    'L: ret; L: ret;',
    '{ L: ret; } bra L;',
    'bra L; { L: ret; }',
    '{ bra L; } L: ret;',
    'L:',
    'L: }',
    '{ ret; ',
    'bra L;',
    'bra.uni L; L: ret;',
    'L: .reg .b32 x; ret;',
    '.shared .b32 s; mov.u32 s, 0;',
    '.shared .b32 s; .reg .b32 r; mov.u32 r, s;',
    '.shared .b32 s[]; ',
    '.extern .shared .b32 s[];',
    '.local .b32 l; .local .b32 l;',
    '.local .b32 l[]; ',
    '.local .b32 l = 3;',
    '.shared .b32 s = 3;',
    '.const .b32 c = 3;',
    '.global .b32 gg = 3;',
    '.visible .global .b32 gg = 3;',
    '.weak .shared .b32 s;',
    '.param .b32 p;',
    '.param .align 8 .b8 p[8];',
    '.param .b32 p = 3;',
    '.local .align 3 .b32 l;',
    '.local .align 2 .b32 l;',
    '.local .b8 l[10000000];',
    '.shared .b8 s[49152];',
    '.shared .b8 s[49153];',
    '.shared .b8 s[232448];',
    '.shared .b8 s[232449];',
    '.loc 1 2 3',
    '.loc 1 2',
    '.loc 1',
    '.file 1 "a"',
    '.file 1 "a"\n.loc 1 2 3',
    '.pragma "nounroll";',
    '.pragma "a","b";',
    '.pragma "nounroll"',
    '.pragma nounroll;',
    'ret',
    'ret;;',
    'exit; ret;',
    'call f;',
    'call k;',
    'call (a), f;',
    '.branchtargets L; L: ret;',
    'T: .branchtargets L; L: ret;',
    'T: .branchtargets L, L; .reg .u32 i; brx.idx i, T; L: ret;',
    '.reg .u32 i; brx.idx i, T; T: .branchtargets L; L: ret;',
    'T: .branchtargets M; ret;',
    'T: .callprototype _ ();',
    'T: .callprototype (.param .b32 _) _ (.param .b32 _);',
    'T: .callprototype (.param .b32 x) y (.param .b32 z);',
    'T: .calltargets k;',
    'T: .calltargets zz;',
    '.entry x() {ret;}',
    '.func x() {ret;}',
    '.version 9.0',
    '.target sm_90',
    'mov.b32 %tid, 1;',
    '.reg .b32 %tid;',
    '.reg .b32 tid;',
    '.reg .b32 %laneid;',
    '.reg .b32 WARP_SZ;',
    '.reg .b32 mov;',
    '.reg .b32 ret;',
    '.reg .b32 bra; mov.b32 bra, 1;',
    'mov: ret;',
    '.reg .b32 x; mov.b32 x, x',
    '.reg .b32 x; mov .b32 x, x;',
    '.reg .b32 x; mov. b32 x, x;',
    '.reg .b32 x; MOV.b32 x, x;',
    '.reg .b32 x; mov.B32 x, x;',
    '.reg .b32 x; mov.b32 x, 0X10U;',
    '.reg .b32 x; mov.b32 x, 010;',
    '.reg .b32 x; mov.b32 x, 0b101;',
    '.reg .b32 x; mov.b32 x, 09;',
    '.reg .b32 x; mov.b32 x, 1u;',
    '.reg .b32 x; mov.b32 x, 1L;',
    '.reg .b32 x; mov.b32 x, +1;',
    '.reg .b32 x; mov.b32 x, - 1;',
    '.reg .b32 x; mov.b32 x, ~1;',
    '.reg .b32 x; mov.b32 x, !1;',
    '.reg .b32 x; mov.b32 x, (1+2)*3;',
    '.reg .b32 x; mov.b32 x, 1+2*3;',
    '.reg .b32 x; mov.b32 x, 1<<3;',
    '.reg .b32 x; mov.b32 x, 1/0;',
    '.reg .b32 x; mov.b32 x, 5%3;',
    '.reg .b32 x; mov.b32 x, 1==1;',
    '.reg .b32 x; mov.b32 x, 1?2:3;',
    '.reg .b32 x; mov.b32 x, (.s32)1;',
    '.reg .b32 x; mov.b32 x, (.s64)-1;',
    '.reg .b32 x; mov.b32 x, (.f32)1;',
    '.reg .b32 x; mov.b32 x, WARP_SZ;',
    '.reg .b32 x; mov.b32 x, WARP_SZ+1;',
    '.reg .b32 x; mov.b32 x, 99999999999999999999;',
    '.reg .b32 x; mov.b32 x, 0x1ffffffff;',
    '.reg .b32 x; mov.b32 x, -4294967296;',
    '.reg .f32 x; mov.f32 x, 1;',
    '.reg .f32 x; mov.f32 x, 1.0;',
    '.reg .f32 x; mov.f32 x, 1e5;',
    '.reg .f32 x; mov.f32 x, .5;',
    '.reg .f32 x; mov.f32 x, 5.;',
    '.reg .f32 x; mov.f32 x, 1.5e-3;',
    '.reg .f32 x; mov.f32 x, 1.5f;',
    '.reg .f32 x; mov.f32 x, 0f3f800000;',
    '.reg .f32 x; mov.f32 x, 0F3F800000;',
    '.reg .f32 x; mov.f32 x, 0f3f80000;',
    '.reg .f32 x; mov.f32 x, 0d3ff0000000000000;',
    '.reg .f32 x; mov.f32 x, -0f3f800000;',
    '.reg .f32 x; mov.f32 x, -1.0;',
    '.reg .f32 x; mov.f32 x, 1.0+2.0;',
    '.reg .f32 x; mov.f32 x, inf;',
    '.reg .f64 x; mov.f64 x, 0f3f800000;',
    '.reg .f64 x; mov.f64 x, 1;',
    '.reg .f32 x; add.f32 x, x, 1.0;',
    '.reg .f32 x; add.f32 x, x, 1;',
    '.reg .s32 x; add.s32 x, x, 1.0;',
    '.reg .b32 x, _; mov.b32 x, 1;',
    '.reg .b32 a$b; mov.b32 a$b, 1;',
    '.reg .b32 $x; mov.b32 $x, 1;',
    '.reg .b32 %; ',
    '.reg .b32 1x;',
    '.reg .b32 _x;',
    '.reg .b32 __x;',
    '.reg .b32 $;',
    '.reg .b32 %_;',
    '.reg .b32 %1; mov.b32 %1, 1;',
    '.reg .b32 a.b;',
    '.reg .b32 x; ld.global.b32 x, [g];',
    '.reg .b32 x; ld.global.b32 x, g;',
    '.reg .b32 x; ld.global.b32 x, [g+];',
    '.reg .b32 x; ld.global.b32 x, [g+4];',
    '.reg .b32 x; ld.global.b32 x, [g-4];',
    '.reg .b32 x; ld.global.b32 x, [4+g];',
    '.reg .b32 x; ld.global.b32 x, [g+4+4];',
    '.reg .b32 x; ld.global.b32 x, [g+(4*2)];',
    '.reg .b32 x; ld.global.b32 x, [g+g];',
    '.reg .b32 x; ld.global.b32 x, [g+x];',
    '.reg .b32 x; ld.global.b32 x, [16];',
    '.reg .b32 x; ld.global.b32 x, [-16];',
    '.reg .b32 x; ld.global.b32 x, [x];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y+4294967296];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y+-2147483648];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y+-2147483649];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y+2147483648];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y-4];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y+1.5];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y+WARP_SZ];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y*4];',
    '.reg .b32 x; .reg .f64 y; ld.global.b32 x, [y];',
    '.reg .b32 x; .reg .s64 y; ld.global.b32 x, [y];',
    '.reg .b32 x; .shared .b32 s; ld.global.b32 x, [s];',
    '.reg .b32 x; ld.shared.b32 x, [g];',
    '.reg .b32 x; ld.b32 x, [g];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 {x}, [y];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y;',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x [y];',
    '.reg .b32 x; .reg .b64 y; ld.global.b32 x, [y],;',
    '.reg .b32 x; .reg .b64 y; ld.global.v1.b32 x, [y];',
    '.reg .b64 y; mov.b64 y, g;',
    '.reg .b64 y; mov.b64 y, g+4;',
    '.reg .b64 y; mov.b64 y, generic(g);',
    '.reg .b64 y; mov.b64 y, k;',
    '.reg .b64 y; mov.b64 y, f;',
    '.reg .b64 y; mov.b64 y, L; L:',
    '.reg .b32 y; mov.b32 y, g;',
    '.reg .b64 y; mov.u64 y, g[1];',
    '.reg .b64 y; cvta.global.u64 y, g;',
    '.reg .b64 y; cvta.global.u64 y, g+4;',
    '.reg .b64 y; add.u64 y, y, g;',
    '.reg .b64 y; mov.u64 y, zz;',
    '.reg .b32 a,b; mov.b64 {a,b}, 1;',
    '.reg .b64 q; .reg .b32 a,b; mov.b64 {a,b}, q;',
    '.reg .b64 q; .reg .b32 a,b; mov.b64 {a,_}, q;',
    '.reg .b64 q; .reg .b32 a,b; mov.b64 {_,_}, q;',
    '.reg .b64 q; .reg .b32 a,b; mov.b64 q, {a,_};',
    '.reg .b64 q; .reg .b32 a,b; mov.b64 q, {a,1};',
    '.reg .b64 q; .reg .b32 a,b; mov.b64 q, {a,b,a};',
]

# Directives of a module.
MODULES = [
    '.version 9.0',
    '.target sm_80',
    '.address_size 64',
    '.address_size 32',
    '.file 1 "x.c"',
    '.file 1 "x.c", 1, 2',
    '.file 0 "x"',
    '.file "x"',
    '.section .debug_abbrev { .b8 1 }',
    '.section .debug_str { .b8 1,2,3\n}',
    '.section .debug_str { info: .b8 1\n.b32 info\n.b64 info+4\n.b32 info-info\n}',
    '.section .debug_loc { .b16 1 }',
    '.section .foo { .b8 1 }',
    '.section foo { .b8 1 }',
    '.section .debug_info { }',
    '.section .debug_info { .b8 }',
    '.section .debug_info { .b8 300 }',
    '.section .debug_info { .b32 -1 }',
    '.section .debug_info { .b8 1; }',
    '.section .debug_info { .b32 .debug_abbrev\n.b32 .debug_abbrev+4 }',
    '.section .debug_info { .b8 zz }',
    '.section .debug_info { .b64 zz }',
    '.section .debug_info { .b64 k }',
    '.section .debug_info { .b8 0x10, 1 }',
    '.section .debug_info { L: }',
    '.section .debug_info { .b128 1 }',
    '.section .debug_info { .u8 1 }',
    '.section .debug_info { .b32 1.5 }',
    '.section .debug_info { .b8 1 2 }',
    '.section .debug_info { .b8 1, }',
    '.section .debug_info { .b8 1 .b8 2 }',
    '.section .debug_info { .b8 -1 }',
    '.section .debug_info { .b16 L-M\nL:\nM:\n }',
    '.pragma "x";',
    '.pragma "x"',
    '.alias a, b;',
    '.func ff() {ret;}\n.func gg();\n.alias gg, ff;',
    '.func ff() {ret;}\n.visible .func gg();\n.alias gg, ff;',
    '.func ff() {ret;}\n.alias ff, ff;',
    '.reg .b32 x;',
    'mov.b32 x, y;',
    'ret;',
    '{ }',
    ';',
    'garbage',
    '#if 1',
    '/* open',
    '"str"',
    '.global .b32 k;',
    '.func k() {ret;}',
    '.entry k() {ret;}',
    '.visible .entry k();',
    '.extern .entry zz();',
    '.extern .func zz();',
    '.extern .func zz(); .extern .func zz();',
    '.extern .func zz(); .extern .func zz(.param .b32 x);',
    '.func zz(); .func zz() { ret; }',
    '.func zz(); .visible .func zz() { ret; }',
    '.visible .func zz(); .func zz() { ret; }',
    '.func zz(.param .b32 a); .func zz(.param .b64 b) { ret; }',
    '.func zz(.param .b32 a); .func zz(.param .f32 b) { ret; }',
    '.func (.param .b32 r) zz(); .func zz() { ret; }',
    '.func zz() {ret;} .func zz() {ret;}',
    '.global .b32 z; .global .b32 z;',
    '.extern .global .b32 z; .global .b32 z;',
    '.extern .global .b32 z; .visible .global .b32 z;',
    '.extern .global .b32 z; .extern .global .b32 z;',
    '.extern .global .b64 z; .visible .global .b32 z;',
    '.extern .global .b32 z[]; .visible .global .b32 z[4];',
    '.weak .global .b32 z; .weak .global .b32 z;',
    '.common .global .b32 z; .common .global .b32 z;',
    '.global .b32 z; .shared .b32 z;',
    '.const .b8 c[65536];',
    '.const .b8 c[65537];',
    '.const .b8 c[65536]; .const .b8 d[8];',
    '.const[1] .b8 c[65536];',
    '.const[11] .b8 c;',
    '.const[10] .b8 c;',
    '.const[0] .b8 c; .const[1] .b8 d;',
    '.extern .const[2] .b8 c[];',
    '.shared .b8 s[49153];',
    '.global .b8 s[4294967296];',
    '.global .b8 s[18446744073709551616];',
    '.global .align 256 .b8 s[4];',
    '.global .align 65536 .b8 s[4];',
    '.global .align 1 .b64 s;',
    '.global .b32 s[3] = {1,2,3,4};',
    '.global .attribute(.managed) .b32 z;',
    '.global .attribute(.unified(1,2)) .b32 z;',
    '.global .attribute(.managed,.unified(1,2)) .b32 z;',
    '.shared .attribute(.managed) .b32 z;',
    '.global .attribute(.foo) .b32 z;',
    '.global .b32 z .attribute(.managed);',
    '.global .u64 z = g; .global .b32 g;',
    '.global .b32 %z;',
    '.global .b32 $z;',
    '.global .b32 _;',
    '.global .b32 tid;',
    '.global .b32 mov;',
    '.global .b32 z[1+1];',
    '.global .b32 z[WARP_SZ];',
    '.global .b32 z[-1];',
    '.global .b32 z[2] = {};',
    '.global .b32 z[2] = {1,};',
    '.global .b32 z[2] = 1;',
    '.global .b32 z = -1;',
    '.global .b32 z = 1<<4;',
    '.global .f32 z[2] = {1.0, 0f00000000};',
    '.global .v2 .b32 z = {1,2};',
    '.global .v2 .b32 z[2] = {{1,2},{3,4}};',
    '.global .v2 .b32 z[2] = {1,2,3,4};',
    '.global .f16 z = 0x1234;',
    '.global .f16 z = 1.0;',
    '.global .bf16 z;',
    '.global .pred z;',
    '.global .b8 z[3]="ab";',
    '@@DWARF .b8 1',
    '.language "c"',
]

# Whole modules.
WHOLE = [
    '.visible .entry k() { .reg .b64 x; mov.b64 x, 0x1ffffffffffffffff; ret; }',
    '.visible .entry k() { .reg .b64 x; mov.b64 x, 18446744073709551616; ret; }',
    '.visible .entry k() { .reg .b64 x; mov.b64 x, 18446744073709551615; ret; }',
    '.global .b64 z = 99999999999999999999;\n.visible .entry k() { ret; }',
    '.extern .func zz(); .func zz() { ret; }\n.visible .entry k() { ret; }',
    '.extern .func zz(); .visible .func zz() { ret; }\n.visible .entry k() { ret; }',
    '.extern .func zz(); .weak .func zz() { ret; }\n.visible .entry k() { ret; }',
    '.global .b32 z; .extern .global .b32 z;\n.visible .entry k() { ret; }',
    '.visible .global .b32 z; .extern .global .b32 z;\n.visible .entry k() { ret; }',
    '.extern .global .b32 z; .weak .global .b32 z;\n.visible .entry k() { ret; }',
    '.extern .global .b32 z; .common .global .b32 z;\n.visible .entry k() { ret; }',
    '.global .b32 z[1+1];\n.visible .entry k() { ret; }',
    '.global .b32 z[WARP_SZ];\n.visible .entry k() { ret; }',
    '.global .b32 z[(2)];\n.visible .entry k() { ret; }',
    '.global .b32 z[0x10];\n.visible .entry k() { ret; }',
    '.global .b32 z[2U];\n.visible .entry k() { ret; }',
    '.visible .entry k(.param .b8 a[1+1]) { ret; }',
    '.visible .entry k() { .local .b32 l[1+1]; ret; }',
    '.visible .entry %r0() { .reg .b32 %r<3>; mov.b32 %r0, 1; ret; }',
    '.visible .entry kk() { .reg .b32 kk; mov.b32 kk, 1; ret; }',
    '.func f() { ret; }\n.visible .entry kk() { .reg .b32 f; mov.b32 f, 1; ret; }',
    '.global .b32 g;\n.visible .entry kk() { .reg .b32 g; mov.b32 g, 1; ret; }',
    '.visible .entry %r0() { .reg .b32 %r<3>; mov.b32 %r1, 1; ret; }',
    '.visible .entry k() { .reg .b64 p; .reg .b32 d; st.param.b32 [p], d; ret; }',
    '.func f(.param .b32 q) { .reg .b64 p; .reg .b32 d; st.param.b32 [p], d; ret; }\n.visible .entry k() { ret; }',
    '.visible .entry k(.param .b32 q) { .reg .b64 p; .reg .b32 d; ld.param.b32 d, [p]; ret; }',
    '.visible .entry k(.param .b32 q) { .reg .b64 p; .reg .b32 d; ld.param::entry.b32 d, [p]; ret; }',
    '.visible .entry k(.param .b32 q) { .reg .b32 d; st.param.b32 [q], d; ret; }',
    '.entry .attribute(.managed) k() { ret; }',
    '.func .attribute(.unified(1,2)) f() { ret; }\n.visible .entry k() { ret; }',
    '.func .attribute(.managed) f() { ret; }\n.visible .entry k() { ret; }',
    '.entry .attribute(.unified(1,2)) k() { ret; }',
    '.const .attribute(.unified(1,2)) .b32 x;\n.visible .entry k() { ret; }',
    '.shared .attribute(.unified(1,2)) .b32 x;\n.visible .entry k() { ret; }',
    '.const .attribute(.managed) .b32 x;\n.visible .entry k() { ret; }',
    '.visible .entry k() .maxclusterrank 0 { ret; }',
    '.visible .entry k() .maxclusterrank 16 { ret; }',
    '.visible .entry k() .maxnreg 1,2 { ret; }',
    '.visible .entry k() .minnctapersm 1,2 { ret; }',
    '.visible .entry k() .maxnreg { ret; }',
    '.visible .entry k() .noreturn 3 { ret; }',
    '.visible .entry k() .explicitcluster 3 { ret; }',
    '.visible .entry k() .minnctapersm 2 .minnctapersm 2 { ret; }',
    '.visible .entry k() .maxnreg 32 .maxnreg 32 { ret; }',
    '.visible .entry k() .maxnreg 32 .minnctapersm 2 { ret; }',
    '.visible .entry k() .reqntid 32 .reqntid 32 { ret; }',
    '.visible .entry k() .explicitcluster .explicitcluster .reqnctapercluster 2 { ret; }',
    '.visible .entry k() .explicitcluster { ret; }',
    '.visible .entry k() .local_maxnreg 3 { ret; }',
    '.visible .entry k() .maxnreg 256 { ret; }',
    '.visible .entry k() .minnctapersm 100 { ret; }',
    '.visible .entry k() .minnctapersm 4294967296 { ret; }',
    '.func f() .noreturn .noreturn { ret; }\n.visible .entry k() { ret; }',
    '.func f() .noreturn { trap; }\n.visible .entry k() { ret; }',
    '.func (.reg .b32 a) f() .noreturn { trap; }\n.visible .entry k() { ret; }',
    '.func f() .abi_preserve 4 { ret; }\n.visible .entry k() { ret; }',
    '.func f() .abi_preserve { ret; }\n.visible .entry k() { ret; }',
    '.func f() .abi_preserve_control 15 { ret; }\n.visible .entry k() { ret; }',
    '.visible .entry k() { .loc 1 2 3 ret; }',
    '.file 1 "a"\n.visible .entry k() { .loc 1 2 3 \n ret; }',
    '.file 1 "a"\n.visible .entry k() { .loc 2 2 3 \n ret; }',
    '.file 1 "a"\n.visible .entry k() { .loc 1 2 3, function_name L, inlined_at 1 2 3 \n ret; }',
    '.file 1 "a"\n.file 1 "b"\n.visible .entry k() { ret; }',
    '.visible .entry k() { .param .f16x2 p; ret; }',
    '.local .b32 x;\n.visible .entry k() { ret; }',
    '.visible .entry k() { .reg .b32 x; mov.b32 x, g[1]; ret; }',
    '.global .b32 g[4];\n.visible .entry k() { .reg .b64 x; mov.b64 x, g[1]; ret; }',
    '.global .b32 g;\n.visible .entry k() { .reg .b64 x; mov.b64 x, g[0]; ret; }',
    '.global .b32 g;\n.visible .entry k() { .reg .b32 x; ld.global.b32 x, g[0]; ret; }',
    '.global .b32 g[4];\n.visible .entry k() { .reg .b32 x; ld.global.b32 x, g[1]; ret; }',
    '.global .b32 g[2][2];\n.visible .entry k() { .reg .b32 x; ld.global.b32 x, g[1]; ret; }',
    '.global .v2 .b32 g;\n.visible .entry k() { .reg .b32 x; ld.global.b32 x, g[1]; ret; }',
    '.global .b32 g[4];\n.visible .entry k() { .reg .b32 x; ld.global.b32 x, [g[1]]; ret; }',
    '.tex .u32 t;\n.visible .entry k() { ret; }',
    '.tex .u64 t;\n.visible .entry k() { ret; }',
    '.tex .texref t;\n.visible .entry k() { ret; }',
    '.global .texref t;\n.visible .entry k() { ret; }',
    '.visible .entry k(.param .texref t) { ret; }',
    '.global .texref t[2];\n.visible .entry k() { ret; }',
    '.global .texref t = { width = 4 };\n.visible .entry k() { ret; }',
]

# Modules with words that came with some version or target.
GATED = [
    '.visible .entry k() { ret; }',
    '.visible .entry k(.param .b128 a) { ret; }',
    '.visible .entry k() { .reg .b128 a; ret; }',
    '.global .b128 g;\n.visible .entry k() { ret; }',
    '.visible .entry k(.param .u64 .ptr .global a) { ret; }',
    '.visible .entry k() .maxclusterrank 4 { ret; }',
    '.visible .entry k() .reqnctapercluster 4 { ret; }',
    '.visible .entry k() .explicitcluster { ret; }',
    '.visible .entry k() .reqntid 32 .reqnctapercluster 2 .blocksareclusters { ret; }',
    '.visible .entry k() .maxntid 32 .minnctapersm 2 { ret; }',
    '.visible .entry k() .maxnreg 32 { ret; }',
    '.visible .entry k() .local_maxnreg 32 { ret; }',
    '.func f() .noreturn { trap; }\n.visible .entry k() { ret; }',
    '.func f() .abi_preserve 3 { ret; }\n.visible .entry k() { ret; }',
    '.global .attribute(.managed) .b32 x;\n.visible .entry k() { ret; }',
    '.global .attribute(.unified(1,2)) .b32 x;\n.visible .entry k() { ret; }',
    '.func .attribute(.unified(1,2)) f() { ret; }\n.visible .entry k() { ret; }',
    '.weak .global .b32 x;\n.visible .entry k() { ret; }',
    '.common .global .b32 x;\n.visible .entry k() { ret; }',
    '.func f() { ret; }\n.func g();\n.alias g, f;\n.visible .entry k() { ret; }',
    '.global .b32 y;\n.global .u64 x = generic(y);\n.visible .entry k() { ret; }',
    '.global .b32 y;\n.global .u8 x[2] = {0xff(y), 1};\n.visible .entry k() { ret; }',
    '.visible .entry k() { .reg .f16x2 a; ret; }',
    '.func f(.param .b32 a[]) { ret; }\n.visible .entry k() { ret; }',
    '.visible .entry k(.param .b8 a[4352]) { ret; }',
    '.visible .entry k(.param .b8 a[4356]) { ret; }',
    '.visible .entry k() { .reg .pred p; .reg .b32 i; T: .branchtargets L; brx.idx i, T; L: ret; }',
    '.shared .b8 s[100000];\n.visible .entry k() { ret; }',
    '.visible .entry k() { .shared .b8 s[49152]; ret; }',
]


# Types of registers that are parameters and results of a function, and what a call passes for them.
COMPONENTS = [".u32", ".v2 .u32", ".v4 .u32", ".v2 .b32", ".v2 .s32", ".v2 .f32", ".v4 .f32", ".v2 .u64", ".v2 .f64", ".v2 .b16", ".v4 .b16", ".v2 .f16", ".v4 .b8",
              ".v2 .pred", ".v4 .f64", ".v2 .b128", ".v8 .u32"]
PASSED = ["t", "5", "t.x", "{x,x}", "_", "t+4", "x"]


def vectors():
    for a in COMPONENTS:
        yield f".func f(.reg {a} a) {{ ret; }}\n{ENTRY}"
        yield f".func (.reg {a} r) f(.reg {a} a, .reg .u32 b) {{ ret; }}\n{ENTRY}"
        yield f".extern .func (.reg {a} r) f(.reg {a} a);\n{ENTRY}"
        yield f".func f(.param {a} a) {{ ret; }}\n{ENTRY}"
        for b in COMPONENTS:
            yield f".func f(.reg {a} a);\n.func f(.reg {b} a) {{ ret; }}\n{ENTRY}"
            if not a.startswith((".v2 .pred", ".v4 .f64", ".v2 .b128", ".v8")) and not b.startswith((".v2 .pred", ".v4 .f64", ".v2 .b128", ".v8")):
                yield f".func f(.reg {a} a) {{ ret; }}\n.visible .entry k() {{ .reg {b} t; call f, (t); ret; }}"
                yield f".func (.reg {a} r) f() {{ ret; }}\n.visible .entry k() {{ .reg {b} t; call (t), f; ret; }}"
    for p in PASSED:
        yield f".func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) {{ ret; }}\n.visible .entry k() {{ .reg .v2 .u32 t, w; .reg .u32 x; call (w), f, ({p}); ret; }}"
        yield f".func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) {{ ret; }}\n.visible .entry k() {{ .reg .v2 .u32 t, w; .reg .u32 x; call ({p}), f, (w); ret; }}"
        yield f".func (.reg .u32 r) f(.reg .u32 a) {{ ret; }}\n.visible .entry k() {{ .reg .u32 t, x; call (x), f, ({p}); ret; }}"
    yield (".func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) { mov.v2.u32 r, a; ret; }\n.visible .entry k() { .reg .v2 .u32 t; .reg .u64 p; "
           "P: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u32 _); mov.u64 p, f; call (t), p, (t), P; ret; }")


def cases():
    yield from vectors()
    for link in LINKING:
        yield f"{link}.entry k() {{ ret; }}"
        yield f"{link}.func k() {{ ret; }}"
        yield f"{link}.func (.reg .b32 r) k(.reg .b32 a) {{ ret; }}"
        for space in SPACES:
            for v in VARIABLES:
                before = G if "=" in v and "g" in v.split("=")[-1] else ""
                yield f"{before}{link}{space} {v}\n{ENTRY}"
    for t in TYPES:
        for a in ADDRESSES:
            yield f"{G}.global .{t} x = {a};\n{ENTRY}"
            yield f"{ENTRY}\n{G}.global .{t} x[2] = {{{a}, 1}};"
    for d in DIRECTIVES:
        yield f".visible .entry k() {d} {{ ret; }}"
        yield f".visible .entry k(.param .u64 a)\n{d}\n{{ ret; }}"
        yield f".func f() {d} {{ ret; }}\n{ENTRY}"
        yield f".extern .func f() {d};\n{ENTRY}"
    for p in PARAMETERS:
        yield f".visible .entry k({p}) {{ ret; }}"
        yield f".func f({p}) {{ ret; }}\n{ENTRY}"
        yield f".func ({p}) f() {{ ret; }}\n{ENTRY}"
        yield f".extern .func ({p}) f({p.replace(' a', ' z')});\n{ENTRY}"
    for b in BODIES:
        if b.rstrip().endswith(("ret", "L: }")):
            yield f"{G}.visible .entry k() {{ {b} }}"
        else:
            yield f"{G}.func f() {{ ret; }}\n.visible .entry k() {{ {b} ret; }}"
    for x in REGISTERS:
        for y in REGISTERS:
            for m in MIXED:
                yield f".visible .entry k() {{ .reg .{x} x; .reg .{y} y; .reg .b64 a, b; .reg .b32 c; {m} ret; }}"
    for m in MODULES:
        yield f"{m}\n{ENTRY}"
    yield from WHOLE


def verdict(ptxas, version, target, case):
    """True, False, or None for no answer."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
        f.write(f".version {version}\n.target {target}\n.address_size 64\n{case}\n")
        f.flush()
        command = [ptxas, "-arch", target, "-c", "-o", os.devnull, f.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
        except subprocess.TimeoutExpired:
            return None
    told = done.stdout + done.stderr
    is_crash = done.returncode < 0 or "Internal compiler error" in told or (done.returncode and not told.strip())
    if is_crash or "Unresolved extern" in told:
        return None
    return done.returncode == 0


def recorded():
    """The verdicts as they are stored, by version and target."""
    with open(os.path.join(HERE, "modules.zlib"), "rb") as f:
        text = zlib.decompress(f.read()).decode()
    out = {}
    for line in text.splitlines():
        if line.startswith("= "):
            now = out.setdefault(tuple(line[2:].split()), [])
        elif line[0] in "+-":
            now.append(line)
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--ptxas", required=True)
    p.add_argument("--more", action="store_true", help="keeps what is recorded, and asks about the modules beyond it")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    args = p.parse_args()
    version = subprocess.run([args.ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    out = ["v " + re.search(r"V(\d+\.\d+\.\d+)", version).group(1)]
    known = recorded() if args.more else {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for head in HEADS:
            asked = list(dict.fromkeys([*(cases() if head == HEADS[0] else []), *GATED]))
            out.append(f"= {head[0]} {head[1]}")
            old = known.get(head, [])
            before = {case[1:] for case in old}
            out += old
            asked = [case for case in asked if case.replace("\n", "\\n") not in before]
            for case, told in zip(asked, pool.map(lambda c: verdict(args.ptxas, *head, c), asked)):
                assert "\\" not in case
                if told is not None:
                    out.append(("+" if told else "-") + case.replace("\n", "\\n"))
    packed = zlib.compress(("\n".join(out) + "\n").encode(), 9)
    with open(os.path.join(HERE, "modules.zlib"), "wb") as f:
        f.write(packed)
    print(f"{sum(o[0] in '+-' for o in out)} modules, {sum(o[0] == '+' for o in out)} accepted, {len(packed)} bytes")


if __name__ == "__main__":
    main()
