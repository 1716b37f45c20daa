import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

interface Cruise {
  readonly modules: readonly { readonly source: string }[];
  readonly summary: {
    readonly violations: readonly { readonly from: string; readonly to: string; readonly rule: { readonly name: string } }[];
  };
}

/** What `npm run check:rooms` sees in `folder`, or in one room of it. */
async function cruise(folder: string, room = 'src'): Promise<Cruise> {
  const script = path.join(PROJECT, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const config = path.join(PROJECT, 'dependency-cruiser.config.mjs');
  const options = { cwd: folder, maxBuffer: 50_000_000 };
  return JSON.parse((await run(process.execPath, [script, '--config', config, '--output-type', 'json', room], options)).stdout);
}

/** Wrong imports: file, what it imports, the rule that says so. */
const WRONG = [
  ['src/core/a.ts', 'src/db/b.ts', 'core-imports-lower-rooms-only'],
  ['src/http/a.ts', 'src/oauth/b.ts', 'http-imports-lower-rooms-only'],
  ['src/walks/a.ts', 'src/oauth/b.ts', 'walks-imports-lower-rooms-only'],
  ['src/walks/c.ts', 'src/unchanged/d.ts', 'walks-imports-lower-rooms-only'],
  ['src/mirror/c.ts', 'src/unchanged/d.ts', 'mirror-imports-lower-rooms-only'],
  ['src/pagers/c.ts', 'src/unchanged/d.ts', 'pagers-imports-lower-rooms-only'],
  ['src/runs/c.ts', 'src/unchanged/d.ts', 'runs-imports-lower-rooms-only'],
  ['src/jobs/c.ts', 'src/unchanged/d.ts', 'unchanged-is-imported-only-where-it-may'],
  ['src/unchanged/a.ts', 'src/runs/b.ts', 'unchanged-imports-lower-rooms-only'],
  ['src/unchanged/a.ts', 'src/http/b.ts', 'unchanged-imports-only-what-it-may'],
  ['src/pagers/a.ts', 'src/http/b.ts', 'pagers-imports-lower-rooms-only'],
  ['src/pagers/a.ts', 'src/catalogue/b.ts', 'pagers-imports-lower-rooms-only'],
  ['src/jobs/a.ts', 'src/app.ts', 'jobs-imports-lower-rooms-only'],
  ['src/sandbox/a.ts', 'src/pagers/b.ts', 'sandbox-imports-only-what-it-may'],
  ['src/db/tables/a.ts', 'src/observability/b.ts', 'db/tables-imports-only-what-it-may'],
  ['src/db/connection/a.ts', 'src/db/tables/b.ts', 'db/connection-imports-lower-rooms-only'],
  ['src/db/connection/a.ts', 'src/db/statements/b.ts', 'db/connection-imports-lower-rooms-only'],
  ['src/mirror/a.ts', 'src/erasure/b.ts', 'mirror-imports-lower-rooms-only'],
  ['src/api/feed/a.ts', 'src/api/operation/b.ts', 'api/feed-imports-lower-rooms-only'],
  ['src/api/plumbing/a.ts', 'src/api/runs/b.ts', 'api/plumbing-imports-lower-rooms-only'],
  ['src/api/plumbing/a.ts', 'src/api/server.ts', 'api/plumbing-imports-lower-rooms-only'],
  ['src/dashboard/pages/a.tsx', 'src/dashboard/sign-in/b.tsx', 'dashboard/pages-imports-lower-rooms-only'],
  ['src/dashboard/parts/a.tsx', 'src/dashboard/pages/b.tsx', 'dashboard/parts-imports-lower-rooms-only'],
  ['src/cli/operate/a.ts', 'src/cli/main.ts', 'cli/operate-imports-lower-rooms-only'],
  ['src/api/other/a.ts', 'src/core/b.ts', 'importers-have-a-room'],
  ['src/db/a.ts', 'src/core/b.ts', 'importers-have-a-room'],
  ['src/jobs/a.ts', 'src/config/b.ts', 'config-is-imported-only-where-it-may'],
  ['src/http/a.ts', 'src/generated/prisma/client.ts', 'generated-is-imported-only-where-it-may'],
  ['src/core/a.ts', 'test/support/b.ts', 'src-imports-src-only'],
  ['src/core/a.ts', 'src/extra/b.ts', 'what-is-imported-has-a-room'],
  ['src/extra/a.ts', 'src/core/b.ts', 'importers-have-a-room'],
  ['src/core/x.ts', 'src/core/y.ts', 'no-cycle'],
] as const;

/** Imports that point down. */
const RIGHT = [
  ['src/observability/logger.ts', 'src/core/b.ts'],
  ['src/db/tables/right.ts', 'src/db/connection/b.ts'],
  ['src/api/server.ts', 'src/api/feed/b.ts'],
  ['src/dashboard/pages/right.tsx', 'src/dashboard/parts/b.tsx'],
  ['src/cli/main.ts', 'src/cli/operate/b.ts'],
  ['src/db/tables/right.ts', 'src/generated/prisma/client.ts'],
  ['src/catalogue/right.ts', 'src/pagers/b.ts'],
  ['src/mirror/right.ts', 'src/pagers/b.ts'],
  ['src/unchanged/right.ts', 'src/walks/b.ts'],
  ['src/unchanged/right.ts', 'src/db/tables/b.ts'],
  ['src/runs/right.ts', 'src/walks/b.ts'],
  ['src/dashboard/pages/right.tsx', 'src/api/runs/b.ts'],
  ['src/app.ts', 'src/unchanged/d.ts'],
  ['src/app.ts', 'src/config/b.ts'],
  ['src/app.ts', 'src/sandbox/b.ts'],
  ['src/cli/serve/right.ts', 'src/app.ts'],
] as const;

/** Every way in which TypeScript names a module, each of one that nobody in `http` may import. */
const FORMS = {
  'side-effect': (target: string) => `import '${target}';`,
  named: (target: string) => `import { b } from '${target}'; void b;`,
  'type-only': (target: string) => `import type { B } from '${target}'; export type { B };`,
  'export-all': (target: string) => `export * from '${target}';`,
  'export-type': (target: string) => `export type { B } from '${target}';`,
  dynamic: (target: string) => `const t = \`\${(await import('${target}')).b}\`; void t;`,
  'type-expression': (target: string) => `export function f(b: import('${target}').B[]) { return b; }`,
};

let folder: string;
let found: Cruise['summary']['violations'];

function add(file: string, text: string): void {
  mkdirSync(path.join(folder, path.dirname(file)), { recursive: true });
  writeFileSync(path.join(folder, file), text, { flag: 'a' });
}

function specifier(from: string, to: string): string {
  const way = path.posix.relative(path.posix.dirname(from), to).replace(/\.tsx?$/, '.js');
  return way.startsWith('.') ? way : `./${way}`;
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'rooms-'));
  for (const [from, to] of [...WRONG, ...RIGHT]) {
    add(from, `import '${specifier(from, to)}';\n`);
    add(to, '');
  }
  add('src/core/y.ts', "import './x.js';\n");
  for (const [form, text] of Object.entries(FORMS)) add(`src/http/${form}.ts`, text('../oauth/b.js'));
  ({ violations: found } = (await cruise(folder)).summary);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('the rules of the rooms', () => {
  test.each(WRONG)('refuse that %s imports %s, by %s', (from, to, name) => {
    const names = found.filter((violation) => violation.from === from && violation.to === to).map(({ rule }) => rule.name);
    expect(names).toContain(name);
  });

  test('accept imports that point down', () => {
    const right = new Set(RIGHT.map(([from, to]) => `${from} ${to}`));
    expect(found.filter(({ from, to }) => right.has(`${from} ${to}`))).toEqual([]);
  });

  test.each(Object.keys(FORMS))('see the import in its form %s', (form) => {
    expect(found.filter(({ from }) => from === `src/http/${form}.ts`).map(({ to }) => to)).toEqual(['src/oauth/b.ts']);
  });
});

// The whole project is what `npm run check:rooms` reads, in the same way.
test('hold in a room of this project, of which every file is read', async () => {
  const { modules, summary } = await cruise(PROJECT, 'src/pagers');
  const read = modules.map(({ source }) => source).filter((source) => source.startsWith('src/pagers/'));
  expect(read.toSorted()).toEqual(
    readdirSync(path.join(PROJECT, 'src/pagers'), { recursive: true })
      .map((file) => `src/pagers/${String(file)}`)
      .filter((file) => file.endsWith('.ts'))
      .toSorted(),
  );
  expect(summary.violations).toEqual([]);
});
