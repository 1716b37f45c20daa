import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findViolations } from '../../scripts/rooms/violations.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'rooms-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Violations of a tree in which each file imports the files named. */
function violationsOf(tree: Record<string, readonly string[]>): string[] {
  for (const [file, imports] of Object.entries(tree)) {
    mkdirSync(path.join(root, path.dirname(file)), { recursive: true });
    const lines = imports.map((target) => `import '${relative(file, target)}';`);
    writeFileSync(path.join(root, file), `${lines.join('\n')}\n`);
  }
  return findViolations(root);
}

function relative(from: string, to: string): string {
  const way = path.posix.relative(path.posix.dirname(from), to).replace(/\.tsx?$/, '.js');
  return way.startsWith('.') ? way : `./${way}`;
}

describe('imports between rooms', () => {
  it('accepts imports that point down', () => {
    const tree = {
      'src/core/clock.ts': [],
      'src/observability/logger.ts': ['src/core/clock.ts'],
      'src/db/database.ts': ['src/observability/logger.ts', 'src/core/clock.ts', 'src/generated/prisma/client.ts'],
      'src/catalogue/load.ts': ['src/observability/logger.ts'],
      'src/http/client.ts': ['src/core/clock.ts'],
      'src/mirror/writer.ts': ['src/db/database.ts'],
      'src/sync/walk.ts': ['src/http/client.ts', 'src/mirror/writer.ts'],
      'src/oauth/keeper.ts': ['src/http/client.ts', 'src/db/database.ts'],
      'src/jobs/worker.ts': ['src/sync/walk.ts', 'src/oauth/keeper.ts'],
      'src/admin/page.tsx': [],
      'src/admin/server.ts': ['src/oauth/keeper.ts', 'src/admin/page.tsx'],
      'src/sandbox/authority.ts': ['src/core/clock.ts'],
      'src/config/config.ts': ['src/core/clock.ts'],
      'src/app.ts': ['src/config/config.ts', 'src/admin/server.ts', 'src/sandbox/authority.ts'],
      'src/cli/main.ts': ['src/app.ts', 'src/config/config.ts'],
    };
    expect(violationsOf(tree)).toEqual([]);
  });

  it.each([
    ['src/core/a.ts', 'src/db/b.ts', 'core may not import db, which is above it'],
    ['src/http/a.ts', 'src/oauth/b.ts', 'http may not import oauth, which is above it'],
    ['src/sync/a.ts', 'src/oauth/b.ts', 'sync may not import oauth, which is of the same rank'],
    ['src/pagers/a.ts', 'src/http/b.ts', 'pagers may not import http, which is of the same rank'],
    ['src/db/a.ts', 'src/catalogue/b.ts', 'db may not import catalogue, which is of the same rank'],
    ['src/jobs/a.ts', 'src/app.ts', 'jobs may not import app, which is above it'],
    ['src/sandbox/a.ts', 'src/pagers/b.ts', 'sandbox imports only core: '],
    ['src/jobs/a.ts', 'src/config/config.ts', 'only app, cli import config: '],
    ['src/http/a.ts', 'src/generated/prisma/client.ts', 'only db, mirror, oauth, sync, admin, jobs import generated: '],
    ['src/core/a.ts', 'test/support/b.ts', 'src/ imports only src/'],
  ])('refuses that %s imports %s', (from, to, rule) => {
    expect(violationsOf({ [from]: [to], [to]: [] })).toEqual([expect.stringContaining(`${from}:1: imports ${to}: ${rule}`)]);
  });

  it('counts type-only imports', () => {
    mkdirSync(path.join(root, 'src/http'), { recursive: true });
    writeFileSync(path.join(root, 'src/http/a.ts'), "import type { B } from '../oauth/b.js';\n");
    expect(findViolations(root)).toHaveLength(1);
  });

  it('refuses an import that cannot be checked', () => {
    mkdirSync(path.join(root, 'src/core'), { recursive: true });
    writeFileSync(path.join(root, 'src/core/a.ts'), 'await import(name);\n');
    expect(findViolations(root)).toEqual([expect.stringContaining('src/core/a.ts:1: imports something that is no plain string')]);
  });

  it('refuses a file that belongs to no room', () => {
    expect(violationsOf({ 'src/extra/a.ts': [] })).toEqual([expect.stringContaining('src/extra/a.ts: belongs to no room')]);
  });
});

describe('cycles', () => {
  it('names the way round, once', () => {
    const tree = { 'src/core/a.ts': ['src/core/b.ts'], 'src/core/b.ts': ['src/core/c.ts'], 'src/core/c.ts': ['src/core/a.ts'] };
    expect(violationsOf(tree)).toEqual([
      'src/core/a.ts: import cycle: src/core/a.ts -> src/core/b.ts -> src/core/c.ts -> src/core/a.ts',
    ]);
  });

  it('sees a file that imports itself', () => {
    expect(violationsOf({ 'src/core/a.ts': ['src/core/a.ts'] })).toEqual([
      'src/core/a.ts: import cycle: src/core/a.ts -> src/core/a.ts',
    ]);
  });

  it('accepts two ways to the same file', () => {
    const tree = { 'src/core/a.ts': ['src/core/b.ts', 'src/core/c.ts'], 'src/core/b.ts': ['src/core/c.ts'], 'src/core/c.ts': [] };
    expect(violationsOf(tree)).toEqual([]);
  });
});

describe('names', () => {
  it.each([
    ['src/core/utils/text.ts', '"utils" says nothing of what is inside'],
    ['test/helpers/text.test.ts', '"helpers" says nothing of what is inside'],
    ['src/core/common.ts', '"common" says nothing of what is inside'],
    ['src/lib/text.ts', '"lib" says nothing of what is inside'],
    ['src/core/textScanner.ts', 'file names are kebab-case'],
    ['src/core/index.ts', 'no index files'],
  ])('refuses %s', (file, rule) => {
    expect(violationsOf({ [file]: [] })).toContainEqual(expect.stringContaining(`${file}: ${rule}`));
  });

  it('leaves generated code alone', () => {
    expect(violationsOf({ 'src/generated/prisma/commonInputTypes.ts': [], 'src/generated/prisma/index.ts': [] })).toEqual([]);
  });
});

it('finds nothing in this project', () => {
  expect(findViolations(fileURLToPath(new URL('../..', import.meta.url)))).toEqual([]);
});
