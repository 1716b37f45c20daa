import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { baseImage, pinned } from '../../scripts/release/base-image.js';
import { cutChangelog } from '../../scripts/release/changelog.js';
import { frozenMigrations } from '../../scripts/release/released-migrations.js';
import { isLater, VERSIONED } from '../../scripts/release/versions.js';

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');

describe('the changelog of a release', () => {
  const before = '# Changelog\n\n## [Unreleased]\n\nWhat is new.\n\n### Added\n\n- One.\n\n## [0.1.0] - 2026-11-20\n\n- Old.\n';

  test('gives what is unreleased a version and a day, and leaves a place for what comes next', () => {
    const { changelog, notes } = cutChangelog(before, '0.2.0', '2026-11-28');
    expect(changelog).toBe(
      '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-28\n\nWhat is new.\n\n### Added\n\n- One.\n\n## [0.1.0] - 2026-11-20\n\n- Old.\n',
    );
    expect(notes).toBe('What is new.\n\nCHANGELOG.md lists every change.\n');
    expect(() => cutChangelog(changelog, '0.3.0', '2026-11-29')).toThrow('no entry under [Unreleased]');
  });

  test('is all of its notes where nothing is written above the lists, also in the first release', () => {
    const { changelog, notes } = cutChangelog('## [Unreleased]\n\n### Fixed\n\n- One.\n', '0.2.0', '2026-11-28');
    expect(changelog).toBe('## [Unreleased]\n\n## [0.2.0] - 2026-11-28\n\n### Fixed\n\n- One.\n');
    expect(notes).toBe('### Fixed\n\n- One.\n');
  });

  test.each([
    ['# Changelog\n', 'has no line "## [Unreleased]"'],
    ['## [Unreleased]\n\n### Added\n', 'no entry'],
    [`${before}\n## [0.2.0] - 2026-11-27\n`, 'has a section of 0.2.0 already'],
  ])('is refused for %j', (text, message) => {
    expect(() => cutChangelog(text, '0.2.0', '2026-11-28')).toThrow(message);
  });

  test('can be cut as it is, once it has an entry', () => {
    const withEntry = read('CHANGELOG.md').replace('\n## [Unreleased]\n', '$&\n- An entry.\n');
    expect(() => cutChangelog(withEntry, '999.0.0', '2026-11-28')).not.toThrow();
  });
});

test.each([
  ['--help', 0, ''],
  ['--chekced', 2, "Unknown option '--chekced'"],
])('`npm run release -- %s` says the usage', (option, code, problem) => {
  const script = fileURLToPath(new URL('../../scripts/release.ts', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', script, option], { encoding: 'utf8' });
  expect(status).toBe(code);
  expect(stdout + stderr).toContain('usage: npm run release -- 0.3.0 [--checked]');
  expect(stderr).toContain(problem);
  expect(stderr).not.toMatch(/^ +at /m);
});

describe('the migrations of a release', () => {
  test('keep their checksums, and one that was released and edited is refused', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'muster-migrations-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const write = (name: string, sql: string) => {
      mkdirSync(path.join(folder, name), { recursive: true });
      writeFileSync(path.join(folder, name, 'migration.sql'), sql);
    };
    write('2_second', 'SELECT 2;');
    write('1_first', 'SELECT 1;');
    const frozen = frozenMigrations(folder);
    expect(frozen).toMatch(/^[0-9a-f]{64} {2}1_first\n[0-9a-f]{64} {2}2_second\n$/);
    writeFileSync(path.join(folder, 'released.sha256'), frozen);
    write('3_third', 'SELECT 3;');
    expect(frozenMigrations(folder).startsWith(frozen)).toBe(true);
    write('2_second', 'SELECT 22;');
    expect(() => frozenMigrations(folder)).toThrow('edited or are gone: 2_second');
  });
});

describe('the version', () => {
  test('is set in each file that names it, and nothing else in them changes', () => {
    for (const [file, withVersion] of Object.entries(VERSIONED)) {
      if (file.startsWith('deploy/')) continue; // its own test compares it with package.json
      const text = read(file);
      const changed = withVersion(text, '9.8.7');
      const before = text.split('\n');
      const lines = changed.split('\n').filter((line, i) => line !== before[i]);
      expect(new Set(lines.map((line) => line.trim())), file).toEqual(new Set(['"version": "9.8.7",']));
      expect(lines).toHaveLength(file === 'package.json' ? 1 : 2);
    }
    expect(VERSIONED['deploy/chart/Chart.yaml']!('a: 1\nversion: 0.1.0\nappVersion: "0.1.0"\n', '0.2.0')).toBe(
      'a: 1\nversion: 0.2.0\nappVersion: "0.2.0"\n',
    );
  });

  test('is the same in package.json and its lock', () => {
    const { version } = JSON.parse(read('package.json')) as { readonly version: string };
    const lock = JSON.parse(read('package-lock.json')) as {
      readonly version: string;
      readonly packages: Record<string, { version: string }>;
    };
    expect([lock.version, lock.packages['']!.version]).toEqual([version, version]);
  });

  test.each([
    ['0.2.0', '0.1.9', true],
    ['0.10.0', '0.9.0', true],
    ['1.0.0', '0.99.99', true],
    ['0.2.0', '0.2.0', false],
    ['0.1.9', '0.2.0', false],
  ])('%s comes after %s: %s', (next, current, later) => {
    expect(isLater(next, current)).toBe(later);
  });
});

describe('the base image', () => {
  const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

  test('is pinned by a digest, and by another one later', () => {
    const dockerfile = 'ARG NODE_IMAGE=node:24-slim\nFROM ${NODE_IMAGE}\n';
    expect(baseImage(dockerfile)).toEqual({ tag: 'node:24-slim', digest: undefined });
    const once = pinned(dockerfile, digest);
    expect(once).toBe(`ARG NODE_IMAGE=node:24-slim@${digest}\nFROM \${NODE_IMAGE}\n`);
    expect(baseImage(once)).toEqual({ tag: 'node:24-slim', digest });
    expect(pinned(once, digest.replace('0', 'f'))).toContain('node:24-slim@sha256:f');
  });

  test('is not pinned by what is no digest', () => {
    expect(() => pinned('ARG NODE_IMAGE=node:24-slim\n', 'sha256:1')).toThrow('no digest');
    expect(baseImage('ARG NODE_IMAGE=node:24-slim@sha256:1\n').digest).toBeUndefined();
    expect(baseImage(read('Dockerfile')).tag).toMatch(/^node:\d+-slim$/);
  });
});
