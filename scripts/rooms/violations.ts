import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { importsOf } from './imports.js';
import { IMPORTED_ONLY_BY, IMPORTS_ONLY, rankOf } from './ranks.js';

/** Names that say nothing of what is inside, so that anything ends up there. */
const EMPTY_NAMES = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'lib', 'misc', 'shared']);
const KEBAB_CASE = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)*\.tsx?$/;
const SOURCE_FOLDERS = ['src', 'test', 'bench', 'scripts'];

/** An import of one file of src/ by another; both are paths from the root with forward slashes. */
interface Edge {
  readonly from: string;
  readonly to: string;
  readonly line: number;
}

/** Every breach of the rules on rooms and names below `root`, one line each: file, import, rule. Empty = all is well. */
export function findViolations(root: string): string[] {
  const names = SOURCE_FOLDERS.flatMap((folder) => sourceFiles(root, folder).flatMap(nameViolations));
  const files = sourceFiles(root, 'src');
  const homeless = files
    .filter((file) => rankOf(roomOf(file)) === undefined)
    .map((file) => `${file}: belongs to no room; give "${roomOf(file)}" a rank in scripts/rooms/ranks.ts or move the file`);
  const { edges, unreadable } = importsBetween(root, files);
  return [...names, ...homeless, ...unreadable, ...edges.flatMap(edgeViolations), ...cycles(edges)];
}

/** The generated client is nobody's to name or to mend. */
function sourceFiles(root: string, folder: string): string[] {
  if (!existsSync(path.join(root, folder))) return [];
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join(folder, file.split(path.sep).join('/')))
    .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('src/generated/'))
    .toSorted();
}

function nameViolations(file: string): string[] {
  const folders = file.split('/');
  const name = folders.pop() ?? '';
  const empty = [...folders, name.replace(/\..*$/, '')].filter((part) => EMPTY_NAMES.has(part));
  return [
    ...empty.map((part) => `${file}: "${part}" says nothing of what is inside; name it after its subject`),
    ...(KEBAB_CASE.test(name) ? [] : [`${file}: file names are kebab-case`]),
    ...(/^index\.tsx?$/.test(name) ? [`${file}: no index files; import each file by its own name`] : []),
  ];
}

/** src/http/client.ts -> http; src/app.ts -> app. */
function roomOf(file: string): string {
  return (file.split('/')[1] ?? '').replace(/\.tsx?$/, '');
}

function importsBetween(root: string, files: readonly string[]): { edges: Edge[]; unreadable: string[] } {
  const edges: Edge[] = [];
  const unreadable: string[] = [];
  for (const file of files) {
    for (const { specifier, line } of importsOf(readFileSync(path.join(root, file), 'utf8'))) {
      if (specifier === undefined)
        unreadable.push(`${file}:${line}: imports something that is no plain string, so no rule can be checked`);
      else if (specifier.startsWith('.')) edges.push({ from: file, to: resolve(root, file, specifier), line });
    }
  }
  return { edges, unreadable };
}

/** The source behind an import: './x.js' is x.ts or x.tsx. */
function resolve(root: string, from: string, specifier: string): string {
  const target = path.posix.join(path.posix.dirname(from), specifier);
  const candidates = [target.replace(/\.js$/, '.ts'), target.replace(/\.jsx?$/, '.tsx')];
  return candidates.find((candidate) => existsSync(path.join(root, candidate))) ?? target;
}

function edgeViolations({ from, to, line }: Edge): string[] {
  const breach = (rule: string) => [`${from}:${line}: imports ${to}: ${rule}`];
  if (!to.startsWith('src/')) return breach('src/ imports only src/, or it would not run once compiled');
  const [importer, imported] = [roomOf(from), roomOf(to)];
  if (importer === imported) return [];

  const only = IMPORTS_ONLY[importer];
  if (only && !only.rooms.includes(imported)) return breach(`${importer} imports only ${only.rooms.join(', ')}: ${only.because}`);
  const by = IMPORTED_ONLY_BY[imported];
  if (by && !by.rooms.includes(importer)) return breach(`only ${by.rooms.join(', ')} import ${imported}: ${by.because}`);

  const [rank, importedRank] = [rankOf(importer), rankOf(imported)];
  if (rank === undefined || importedRank === undefined || importedRank < rank) return [];
  return breach(`${importer} may not import ${imported}, which is ${importedRank === rank ? 'of the same rank' : 'above it'}`);
}

/** One line for each group of files that reach each other, with a shortest way round. Type-only imports count. */
function cycles(edges: readonly Edge[]): string[] {
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of edges) targets.set(from, (targets.get(from) ?? new Set()).add(to));
  const reported = new Set<string>();
  return [...targets.keys()].flatMap((start) => {
    if (reported.has(start)) return [];
    const round = shortestRound(start, targets);
    if (!round) return [];
    for (const file of round) reported.add(file);
    return [`${start}: import cycle: ${[...round, start].join(' -> ')}`];
  });
}

function shortestRound(start: string, targets: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const seen = new Set<string>();
  let ways = [[start]];
  while (ways.length > 0) {
    const longer: string[][] = [];
    for (const way of ways) {
      for (const target of targets.get(way.at(-1) ?? start) ?? []) {
        if (target === start) return way;
        if (seen.has(target)) continue;
        seen.add(target);
        longer.push([...way, target]);
      }
    }
    ways = longer;
  }
  return undefined;
}
