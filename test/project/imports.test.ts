import { describe, expect, it } from 'vitest';
import { importsOf } from '../../scripts/rooms/imports.js';

const specifiers = (source: string) => importsOf(source).map(({ specifier }) => specifier);

describe('importsOf', () => {
  it('sees every form of import', () => {
    const source = `
      import './side-effect.js';
      import one from './default.js';
      import { a, type B } from "./named.js";
      import type { C } from './type-only.js';
      import * as all from './namespace.js';
      import {
        many,
      } from './many-lines.js';
      export { d } from './export.js';
      export * from './export-all.js';
      export type { E } from './export-type.js';
      const lazy = await import('./dynamic.js');
      type F = import('./type-expression.js').F;
      import old = require('./required.cjs');
    `;
    expect(specifiers(source)).toEqual([
      './side-effect.js',
      './default.js',
      './named.js',
      './type-only.js',
      './namespace.js',
      './many-lines.js',
      './export.js',
      './export-all.js',
      './export-type.js',
      './dynamic.js',
      './type-expression.js',
      './required.cjs',
    ]);
  });

  it('says on which line it stands', () => {
    expect(importsOf("// first\n\nimport { a } from './a.js';\n")).toEqual([{ specifier: './a.js', line: 3 }]);
  });

  it.each([
    ['a line comment', "// import './no.js'"],
    ['a block comment', "/* import './no.js'\n import('./no.js') */"],
    ['a string', `const s = "import './no.js'"; const t = 'it\\'s from "./no.js"';`],
    ['a template', "const sql = `SELECT 1 from 'no' ${[`import './no.js'`].join(`from './no.js'`)} import('./no.js')`;"],
    ['a regular expression', "const r = /import '.\\/no.js'|[/] from 'no'/g;"],
    ['a property', "registry.import('./no.js'); list.from('no'); import.meta.url;"],
  ])('ignores %s', (_what, source) => {
    expect(specifiers(`${source}\nimport './yes.js';`)).toEqual(['./yes.js']);
  });

  it('keeps its place behind divisions, quotes in expressions and nested templates', () => {
    const source =
      'const a = b / c; const d = [1][0] / 2; const e = /["\'`]/.test(f) ? `${{ g: `}` }}` : 0;\nawait import("./yes.js");';
    expect(specifiers(source)).toEqual(['./yes.js']);
  });

  it('finds an import inside a substitution of a template', () => {
    expect(specifiers("const t = `a ${(await import('./yes.js')).b} c`;")).toEqual(['./yes.js']);
  });

  it('does not guess an import that is no plain string', () => {
    expect(specifiers('await import(name); await import(`./${name}.js`);')).toEqual([undefined, undefined]);
  });
});
