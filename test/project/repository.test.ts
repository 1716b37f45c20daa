import { type ExecFileSyncOptionsWithStringEncoding, execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { MUTATIONS } from '../../scripts/mutations/lines.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(path.join(PROJECT, file), 'utf8');

/** What git tracks; in a copy without git, every file that .gitignore does not name. */
function projectFiles(): string[] {
  try {
    const options: ExecFileSyncOptionsWithStringEncoding = {
      cwd: PROJECT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    };
    // A copy inside somebody else's repository is not that repository.
    const top = execFileSync('git', ['rev-parse', '--show-toplevel'], options).trim();
    if (path.resolve(top) !== path.resolve(PROJECT)) throw new Error('another repository');
    return execFileSync('git', ['ls-files', '-z'], options)
      .split('\0')
      .filter((file) => file !== '' && existsSync(path.join(PROJECT, file)));
  } catch {
    const ignored = new Set([
      '.git',
      ...read('.gitignore')
        .split('\n')
        .map((line) => line.replace(/\/$/, '')),
    ]);
    const list = (folder: string): string[] =>
      readdirSync(path.join(PROJECT, folder), { withFileTypes: true }).flatMap((entry) => {
        const file = path.posix.join(folder, entry.name);
        if (ignored.has(file) || entry.name.endsWith('.log')) return [];
        return entry.isDirectory() ? list(file) : [file];
      });
    return list('');
  }
}

const files = projectFiles();
const documents = files.filter((file) => file.endsWith('.md'));

describe('files', () => {
  // Put together here, so that this file does not contain what it looks for.
  const HOSTS = ['registry.npm', 'registry.yarn', 'deb.deb'].map((start, i) => `${start}${['js.org', 'pkg.com', 'ian.org'][i]}`);
  const FOLDERS = ['work/', 'farm/', 'home/\\w', 'Users/\\w'].map((folder) => `(?<![\\w.-])/${folder}`);
  /** The home folder of a user that an image has. */
  const ALLOWED = /\/home\/node\b/g;

  test('name no registry and no folder of a machine', () => {
    const pattern = new RegExp([...HOSTS.map((host) => host.replaceAll('.', '\\.')), ...FOLDERS].join('|'));
    const texts = files.filter((file) => file !== 'package-lock.json' && statSync(path.join(PROJECT, file)).size < 1_000_000);
    expect(texts.length).toBeGreaterThan(50);
    const found = texts.flatMap((file) => {
      const lines = read(file).split('\n');
      return lines.flatMap((line, i) => (pattern.test(line.replaceAll(ALLOWED, '')) ? [`${file}:${i + 1}: ${line.trim()}`] : []));
    });
    expect(found).toEqual([]);
  });
});

describe('package.json', () => {
  type Dependencies = Readonly<Record<string, string>>;
  const manifest = JSON.parse(read('package.json')) as Readonly<Record<string, Dependencies>>;
  const groups = ['dependencies', 'devDependencies', 'optionalDependencies', 'overrides'] as const;

  test('pins exact versions', () => {
    const versions = groups.flatMap((group) => Object.entries(manifest[group] ?? {}));
    expect(versions.length).toBeGreaterThan(20);
    expect(versions.filter(([, version]) => !/^(npm:[@\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
  });

  // Packages that need the compiler's JavaScript API find TypeScript 6 under the name `typescript`, and bring a `tsc` of their own.
  test('compiles with TypeScript 7', () => {
    const tsc = path.join(PROJECT, 'node_modules/.bin/tsc');
    expect(execFileSync(tsc, ['--version'], { encoding: 'utf8' })).toMatch(/^Version 7\./);
  });

  test('names only scripts and files that exist', () => {
    const named = Object.values(manifest.scripts ?? {}).flatMap(
      (script) => script.match(/(?:scripts|bin)\/[\w./-]+|[\w.]+\.config\.ts/g) ?? [],
    );
    expect(named.filter((file) => !existsSync(path.join(PROJECT, file)))).toEqual([]);
  });
});

describe('package-lock.json', () => {
  interface Locked {
    readonly optionalDependencies?: Readonly<Record<string, string>>;
  }
  const { packages } = JSON.parse(read('package-lock.json')) as { readonly packages: Readonly<Record<string, Locked>> };

  /** As Node resolves: next to the package, then further and further up. */
  function isLocked(name: string, from: string): boolean {
    const folders = from.split(/\/?node_modules\//);
    return folders.some(
      (_, i) => [...folders.slice(0, folders.length - i), name].join('/node_modules/').replace(/^\//, '') in packages,
    );
  }

  test('holds the packages of every platform, without which `npm ci` refuses it', () => {
    const missing = Object.entries(packages).flatMap(([from, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isLocked(name, from)),
    );
    expect(missing).toEqual([]);
  });
});

describe('documents', () => {
  test('have no dead relative links', () => {
    const dead = documents.flatMap((document) => {
      const text = read(document).replaceAll(/^```[\s\S]*?^```/gm, '');
      const targets = [...text.matchAll(/\]\((?!\w+:|#)<?([^)\s>#]+)(?:#[^)]*)?>?\)/g)].map(([, target]) => target ?? '');
      return targets
        .filter((target) => !existsSync(path.join(PROJECT, path.dirname(document), decodeURI(target))))
        .map((target) => `${document}: ${target}`);
    });
    expect(documents.length).toBeGreaterThan(5);
    expect(dead).toEqual([]);
  });

  // Decisions are history, and name files of their time.
  test('name only source files and folders that exist', () => {
    const named = documents
      .filter((document) => !/^docs\/decisions\/|^CHANGELOG/.test(document))
      .flatMap((document) =>
        [...read(document).matchAll(/`((?:src|test|scripts|examples|docker)\/[\w./-]*\w\/?)`/g)].map(([, file]) => ({
          document,
          file: file!,
        })),
      );
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter(({ file }) => !existsSync(path.join(PROJECT, file)))).toEqual([]);
  });

  test('name only commands that exist', () => {
    const help = execFileSync(path.join(PROJECT, 'bin/muster'), ['--help'], { encoding: 'utf8' });
    const commands = new Set([...help.matchAll(/^ {2}([a-z-]+)\b/gm)].map(([, command]) => command));
    const named = documents
      .filter((document) => !/^docs\/decisions\/|^CHANGELOG/.test(document))
      .flatMap((document) =>
        [...read(document).matchAll(/(?:`|^ {4}|^|\.\/bin\/)muster ([a-z][a-z-]+)/gm)].map(([, command]) => ({
          document,
          command,
        })),
      );
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter(({ command }) => !commands.has(command))).toEqual([]);
  });

  test('list every decision record, numbered without a gap', () => {
    const records = readdirSync(path.join(PROJECT, 'docs/decisions')).toSorted();
    expect(records.map((record) => record.slice(0, 5))).toEqual(records.map((_, i) => `${String(i + 1).padStart(4, '0')}-`));
    const listed = [...read('docs/README.md').matchAll(/\[(\d{4})\]\(decisions\/([^)]+)\) \| (.+?) \|/g)];
    expect(listed.map(([, , file]) => file)).toEqual(records);
    for (const [, number, file, title] of listed) expect(read(`docs/decisions/${file}`)).toMatch(`# ${number}: ${title}\n`);
  });

  test('give every decision its context, decision and consequences', () => {
    for (const record of readdirSync(path.join(PROJECT, 'docs/decisions'))) {
      const headings = [...read(`docs/decisions/${record}`).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
      expect(headings, record).toEqual(expect.arrayContaining(['Context', 'Decision', 'Consequences']));
    }
  });

  test('keep a changelog with a place for what comes next', () => {
    expect(read('CHANGELOG.md')).toMatch(/^## \[Unreleased\]$/m);
  });
});

test('the lines that npm run test:mutations breaks stand where it looks for them, and so do the tests that must fail', () => {
  const lost = MUTATIONS.filter(
    ({ file, line, tests }) =>
      read(file).split(line).length !== 2 || !tests.every((each) => existsSync(path.join(PROJECT, each))),
  );
  expect(lost.map(({ promise }) => promise)).toEqual([]);
});
