import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs `npm run check:house` on a tree of files. */
function checked(tree: Record<string, string>): { violations: string[]; code: number | null } {
  const folder = mkdtempSync(path.join(tmpdir(), 'house-'));
  try {
    for (const [file, text] of Object.entries(tree)) {
      mkdirSync(path.join(folder, path.dirname(file)), { recursive: true });
      writeFileSync(path.join(folder, file), text);
    }
    const script = path.join(PROJECT, 'scripts/check-house.ts');
    const { stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script, folder], {
      cwd: PROJECT,
      encoding: 'utf8',
    });
    return { violations: stderr.split('\n').filter(Boolean), code: status };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const HOME = 'SQL stands in src/db/tables, one home a table';
const MUSTER = 'tables of schema muster are written in src/db/tables';
const STYLE = 'ask the pager instead of looking at its style';

const WRONG: Readonly<Record<string, { text?: string; rule: string }>> = {
  'src/core/utils/text.ts': { rule: '"utils" says nothing of what is inside' },
  'test/helpers/text.test.ts': { rule: '"helpers" says nothing of what is inside' },
  'src/core/common.ts': { rule: '"common" says nothing of what is inside' },
  'src/lib/text.ts': { rule: '"lib" says nothing of what is inside' },
  'bench/textScanner.ts': { rule: 'file names are kebab-case' },
  'src/core/index.ts': { rule: 'no index files' },
  'src/core/long.ts': { text: '\n'.repeat(300) + 'export {};\n', rule: '301 lines; 300 are the most' },
  'src/core/import-name.ts': { text: 'await import(name);', rule: 'imports something that is no plain string' },
  'src/runs/raw.ts': { text: '\nawait db.$queryRaw<Row[]>`anything`;', rule: HOME },
  'src/runs/fragment.ts': { text: 'const set = Prisma.sql`status = 1`;', rule: HOME },
  'src/jobs/select.ts': { text: 'pool.query(`\n  SELECT a FROM b`);', rule: HOME },
  'src/jobs/with.ts': { text: "client.query('WITH a AS (SELECT 1) SELECT 2');", rule: HOME },
  'src/oauth/update.ts': { text: 'run(`UPDATE ${table} SET a = 1`);', rule: HOME },
  'src/oauth/delete.ts': { text: "run('DELETE FROM tokens');", rule: HOME },
  'src/oauth/insert.ts': { text: 'sql`INSERT INTO a VALUES (${1})`;', rule: HOME },
  'src/mirror/insert.ts': { text: 'run(`WITH a AS (${b}) INSERT INTO\n muster.changes (id) ${c}`);', rule: MUSTER },
  'src/erasure/update.ts': { text: "run('WITH a AS (UPDATE ONLY muster.walks w SET a = 1)');", rule: MUSTER },
  'src/warehouse/delete.ts': { text: 'run(`DELETE FROM "muster"."lists"`);', rule: MUSTER },
  'src/db/schema/merge.ts': { text: "run('MERGE INTO muster.locks l USING a ON true');", rule: MUSTER },
  'src/db/tables/locked.ts': {
    text: 'tx.run(`a ${b} SELECT pg_try_advisory_xact_lock(1)`);',
    rule: 'lock a row of muster.locks',
  },
  'src/walks/literal.ts': { text: "if (kind === 'odata') go();", rule: STYLE },
  'src/walks/member.ts': { text: 'if (pager.style !== other) go();', rule: STYLE },
  'src/runs/case.ts': { text: "switch (x) { case 'next-link': go(); }", rule: STYLE },
  'src/runs/destructured.ts': { text: 'const { style } = pager;', rule: STYLE },
  'src/sample/what.ts': { text: '/** What a run has read. */\nexport {};', rule: 'a comment begins with "What"' },
  'src/sample/same.ts': { text: 'go(); // The same for pages', rule: 'a comment begins with "The same"' },
  'src/sample/member.ts': { text: 'interface A {\n  /**\n   * Of each page.\n   */\n  b: 1;\n}', rule: 'begins with "Of"' },
  'src/sample/page.tsx': { text: 'const a = <p>{/* So it ends. */}</p>;', rule: 'a comment begins with "So"' },
  'src/sample/nobody.ts': { text: "say('Nobody asked.');", rule: '"nobody": name who it is: "no process"' },
  'src/sample/broken.ts': { text: '/* It reads as\n * far as it can. */', rule: '"as far as": write "if" or "up to"' },
  'src/sample/template.ts': { text: 'say(`${a} ends for good`);', rule: '"for good": write "permanently"' },
  'src/sample/text.tsx': { text: 'const a = <p>Ask anew.</p>;', rule: '"anew": write "again"' },
  'src/runs/table.ts': { text: 'const limit = LIMITS[pager.style];', rule: STYLE },
};

describe('the rules of the house', () => {
  const { violations, code } = checked(Object.fromEntries(Object.entries(WRONG).map(([file, { text = '' }]) => [file, text])));

  test.each(Object.entries(WRONG))('refuse %s', (file, { rule }) => {
    expect(violations.filter((line) => line.startsWith(`${file}:`))).toEqual([expect.stringContaining(rule)]);
  });

  test('say where, and fail the check', () => {
    expect(violations).toContain(`src/runs/raw.ts:2: ${HOME}`);
    expect(violations).toContainEqual(expect.stringContaining('src/sample/member.ts:2: a comment begins'));
    expect(code).toBe(1);
  });

  test('refuse thirty files of src under 20 lines, and take one less', () => {
    const tree = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`src/core/file-${i}.ts`, 'export {};\n'.repeat(19)]));
    expect(checked(tree).violations).toEqual([expect.stringContaining('src: 30 files are under 20 lines')]);
    expect(checked({ ...tree, 'src/core/file-0.ts': 'export {};\n'.repeat(20) })).toEqual({ violations: [], code: 0 });
  });

  test('take comments with a subject, whatever their later lines begin with', () => {
    const tree = {
      'src/sample/a.ts': '// The walk reads pages\n// Of lists. What a page holds, it keeps.\nnobody();',
      'src/sample/b.ts': "const a = '// Of strings';\nconst b = `// What a template holds`;\n/** Aside. Sorts by name. */",
    };
    expect(checked(tree)).toEqual({ violations: [], code: 0 });
  });

  test('take SQL and styles where they belong, and words that only look like them', () => {
    const tree = {
      'src/db/tables/runs.ts': 'db.$queryRaw`SELECT 1 FROM runs`;',
      'src/db/tables/walks.ts': 'db.$executeRaw`UPDATE muster.walks SET a = 1`;',
      'src/mirror/reader.ts': 'db.$queryRaw`SELECT 1 FROM muster.walks FOR UPDATE`;',
      'src/mirror/writer.ts': "client.query('INSERT INTO ' + table);",
      'src/pagers/registry.ts': "if (pager.style === 'odata') go();",
      'src/catalogue/entry.ts': "const known = { style: 'next-link' };",
      'src/api/words.ts':
        "// SELECT 1\nfetch(url, { method: 'DELETE' }); say('UPDATE'); say('Select a company'); style('odata'); pool.query('SELECT 1');",
      'src/generated/prisma/commonInputTypes.ts': 'SELECT`SELECT 1`;',
      'src/generated/prisma/index.ts': '',
      'test/foreign/node_modules/package/index.d.ts': '',
    };
    expect(checked(tree)).toEqual({ violations: [], code: 0 });
  });
});
