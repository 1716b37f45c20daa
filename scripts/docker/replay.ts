import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { argument, type Instruction, pairs, parseDockerfile, withArguments, words } from './dockerfile.js';
import { dockerignore } from './dockerignore.js';

/** What a stage of the Dockerfile came to; `root` stands for the image's `/`. */
export interface Stage {
  readonly root: string;
  workdir: string;
  env: Record<string, string>;
  /** Build arguments that the stage declares, by their defaults: a replay is given none. */
  args: Record<string, string>;
  labels: Record<string, string>;
  user: string;
  entrypoint: string[];
  command: string[];
  healthcheck: string[];
}

/** Where a COPY takes its files from. */
interface Source {
  readonly root: string;
  readonly ignored: (file: string) => boolean;
}

/** What a RUN may begin with: it runs on this machine, as whoever replays. */
const HARMLESS = new Set(['npm', 'node', 'mkdir', 'cp', 'mv', 'rm', 'chmod', 'chown']);

const isRoot = process.getuid?.() === 0;

/** Settings without which npm may not reach its registry; nothing else of this environment gets into a stage. */
const PASSED_ON =
  /^(?:HOME|TMPDIR|LANG|npm_config_(?:registry|cache|cafile)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)$/i;

/**
 * Replays the Dockerfile of `context` in folders below `target`, as the current user and with this machine's Node, and
 * returns its last stage. Anything that cannot be replayed faithfully is an error, never skipped.
 */
export function replay(context: string, target: string): Stage {
  const stages = new Map<string, Stage>();
  const globals: Record<string, string> = {};
  let stage: Stage | undefined;
  for (const instruction of parseDockerfile(readFileSync(path.join(context, 'Dockerfile'), 'utf8'))) {
    const { name, text, line } = instruction;
    console.log(`\n# ${name} ${text}`);
    try {
      if (name === 'FROM') stage = from(instruction, globals, stages, target);
      else if (name === 'ARG' && !stage) Object.assign(globals, argument(text));
      else if (stage) apply(instruction, stage, stages, context);
      else throw new Error('the first instruction must be FROM');
    } catch (error) {
      throw new Error(`Dockerfile:${line}: ${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
  if (!stage) throw new Error('Dockerfile: there is no stage');
  return stage;
}

/** The environment of a process of the stage: the image's own, and absolute paths in it moved to where the stage stands. */
export function environmentOf(stage: Stage): Record<string, string> {
  const passed = Object.entries(process.env).filter(
    (entry): entry is [string, string] => PASSED_ON.test(entry[0]) && entry[1] !== undefined,
  );
  const own = Object.entries(stage.env).map(([key, value]) => [
    key,
    value.startsWith('/') ? path.join(stage.root, value) : value,
  ]);
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((folder) => !folder.includes('node_modules'));
  return { ...Object.fromEntries([...passed, ...own]), PATH: folders.join(path.delimiter) };
}

function from(
  { options, text }: Instruction,
  globals: Readonly<Record<string, string>>,
  stages: Map<string, Stage>,
  target: string,
): Stage {
  refuseOptions(options, []);
  const [image = '', as, name = `stage-${stages.size}`] = words(withArguments(text, globals));
  if (as !== undefined && as.toUpperCase() !== 'AS') throw new Error(`"${text}" is not understood`);
  if (!/^node:\d+-slim(?:@sha256:[0-9a-f]{64})?$/.test(image))
    throw new Error(`only node:<major>-slim can be replayed, not ${image}`);
  const root = path.join(target, name);
  mkdirSync(root, { recursive: true });
  const stage: Stage = {
    root,
    workdir: '/',
    env: {},
    args: {},
    labels: {},
    user: 'root',
    entrypoint: [],
    command: [],
    healthcheck: [],
  };
  stages.set(name, stage);
  return stage;
}

function apply({ name, options, text }: Instruction, stage: Stage, stages: ReadonlyMap<string, Stage>, context: string): void {
  refuseOptions(options, { COPY: ['from'], HEALTHCHECK: ['interval', 'timeout', 'start-period', 'retries'] }[name] ?? []);
  if (!['RUN', 'HEALTHCHECK', 'LABEL'].includes(name) && text.includes('$')) throw new Error('variables are not understood');
  switch (name) {
    case 'WORKDIR':
      stage.workdir = path.posix.resolve(stage.workdir, text);
      mkdirSync(path.join(stage.root, stage.workdir), { recursive: true });
      break;
    case 'ENV':
      Object.assign(stage.env, pairs(text));
      break;
    case 'COPY':
      copy(words(text), stage, options.from === undefined ? buildContext(context) : contentOf(stages.get(options.from)));
      break;
    case 'RUN':
      run(text, stage);
      break;
    case 'USER':
      stage.user = text;
      break;
    case 'ENTRYPOINT':
      stage.entrypoint = words(text);
      break;
    case 'CMD':
      stage.command = words(text);
      break;
    case 'HEALTHCHECK':
      stage.healthcheck = words(text.replace(/^CMD\s+/, ''));
      break;
    case 'ARG':
      Object.assign(stage.args, argument(text));
      break;
    case 'LABEL':
      Object.assign(stage.labels, pairs(withArguments(text, stage.args)));
      break;
    case 'EXPOSE':
      if (!/^\d+( \d+)*$/.test(text)) throw new Error(`${text} is no port`);
      break;
    case 'STOPSIGNAL':
      if (!/^SIG[A-Z]+$/.test(text)) throw new Error(`${text} is no signal`);
      break;
    default:
      throw new Error('this instruction cannot be replayed');
  }
}

function copy(names: readonly string[], into: Stage, source: Source | undefined): void {
  const targetName = names.at(-1) ?? '';
  const sources = names.slice(0, -1);
  if (!source) throw new Error('there is no such stage');
  if (sources.length === 0) throw new Error('needs a source and a target');
  const target = path.join(into.root, path.posix.resolve(into.workdir, targetName));
  for (const name of sources) {
    const found = path.join(source.root, name);
    if (!existsSync(found)) throw new Error(`${name} is not there`);
    if (statSync(found).isDirectory()) {
      copyFolder(found, target, source);
    } else {
      if (source.ignored(name)) throw new Error(`.dockerignore keeps ${name} out`);
      cpSync(found, targetName.endsWith('/') || sources.length > 1 ? path.join(target, path.basename(name)) : target);
    }
  }
}

/** Files one by one: a folder that is ignored may hold a file that is not. */
function copyFolder(folder: string, target: string, { root, ignored }: Source): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isDirectory() || ignored(path.relative(root, file).split(path.sep).join('/'))) continue;
    cpSync(file, path.join(target, path.relative(folder, file)), { verbatimSymlinks: true });
  }
  if (!existsSync(target)) throw new Error(`.dockerignore keeps all of ${path.relative(root, folder)} out`);
}

function contentOf(stage: Stage | undefined): Source | undefined {
  return stage && { root: stage.root, ignored: () => false };
}

function buildContext(root: string): Source {
  const file = path.join(root, '.dockerignore');
  return { root, ignored: dockerignore(existsSync(file) ? readFileSync(file, 'utf8') : '') };
}

function run(command: string, stage: Stage): void {
  for (const part of command.split(/&&|\|\||[;|]/)) {
    const [program = '', ...rest] = words(part.trim());
    if (!HARMLESS.has(program) || rest.some((word) => /^\/|=\/|\.\.\//.test(word))) {
      throw new Error(`"${part.trim()}" would reach beyond the stage; use ${[...HARMLESS].join(', ')} with relative paths`);
    }
    if (program === 'chown' && !/^\d+:\d+$/.test(rest[0] ?? ''))
      throw new Error(`"${part.trim()}" must name a user and a group by number`);
  }
  const { status, error } = spawnSync('/bin/sh', ['-c', isRoot ? command : withoutChown(command)], {
    cwd: path.join(stage.root, stage.workdir),
    env: environmentOf(stage),
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`"${command}" ended with ${status}`);
}

/** Only root may give files away. Whoever else replays the file owns all of them, and tries the image as that one user. */
function withoutChown(command: string): string {
  return command.replace(/\bchown \S+ [^&|;]+/g, 'true ');
}

function refuseOptions(options: Readonly<Record<string, string>>, known: readonly string[]): void {
  const unknown = Object.keys(options).filter((option) => !known.includes(option));
  if (unknown.length > 0) throw new Error(`--${unknown.join(', --')} cannot be replayed`);
}
