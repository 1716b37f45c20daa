import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { pairs, parseDockerfile, words } from '../../scripts/docker/dockerfile.js';
import { dockerignore } from '../../scripts/docker/dockerignore.js';
import { environmentOf, replay } from '../../scripts/docker/replay.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

describe('parseDockerfile', () => {
  test('understands comments, continued lines, options and both forms of words', () => {
    const source =
      '# syntax\nFROM node:24-slim AS build\n\nENV A=1 \\\n  # why\n  B="two words"\nCOPY --from=x --chown=a a b ./\nCMD ["a", "b c"]\n';
    const [from, env, copy, cmd, ...more] = parseDockerfile(source);
    expect(from).toEqual({ name: 'FROM', options: {}, text: 'node:24-slim AS build', line: 2 });
    expect(pairs(env?.text ?? '')).toEqual({ A: '1', B: 'two words' });
    expect(copy).toEqual({ name: 'COPY', options: { from: 'x', chown: 'a' }, text: 'a b ./', line: 7 });
    expect(words(cmd?.text ?? '')).toEqual(['a', 'b c']);
    expect(more).toEqual([]);
  });

  test('refuses what it would misread', () => {
    expect(() => parseDockerfile('RUN <<EOF\nls\nEOF')).toThrow('Dockerfile:1: here-documents');
    expect(() => parseDockerfile('RUN a \\\n')).toThrow('Dockerfile:1: the last instruction has no end');
  });
});

describe('dockerignore', () => {
  test.each([
    ['node_modules', 'node_modules/a/b.js', true],
    ['node_modules', 'src/node_modules/b.js', false],
    ['**/node_modules', 'src/node_modules/b.js', true],
    ['*.log', 'a.log', true],
    ['*.log', 'a/b.log', false],
    ['**/*.log', 'a/b.log', true],
    ['*\n!src', 'src/a/b.ts', false],
    ['*\n!src', 'secret.env', true],
    ['*\n!src\nsrc/generated', 'src/generated/a.ts', true],
    ['/a/', 'a/b', true],
    ['# a\n\n', 'a', false],
  ])('%j on %s: %s', (source, file, ignored) => {
    expect(dockerignore(source)(file)).toBe(ignored);
  });
});

describe('replay', () => {
  let context: string;
  let target: string;
  beforeEach(() => {
    vi.spyOn(console, 'log').mockImplementation(() => {});
    context = mkdtempSync(path.join(tmpdir(), 'context-'));
    target = mkdtempSync(path.join(tmpdir(), 'target-'));
  });
  afterEach(() => {
    vi.restoreAllMocks();
    for (const folder of [context, target]) rmSync(folder, { recursive: true });
  });

  function replayed(files: Record<string, string>) {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.join(context, path.dirname(file)), { recursive: true });
      writeFileSync(path.join(context, file), text);
    }
    return replay(context, target);
  }
  const dockerfile = (...lines: string[]) => ({
    Dockerfile: ['ARG BASE=node:24-slim', 'FROM node:24-slim AS one', 'WORKDIR /app', ...lines].join('\n'),
  });

  test('copies what the context has, and from stage to stage', () => {
    const stage = replayed({
      ...dockerfile(
        'COPY a.txt b.txt ./',
        'COPY src ./src',
        'FROM node:24-slim',
        'WORKDIR /srv',
        'COPY --from=one /app ./all',
        'COPY a.txt c.txt',
      ),
      '.dockerignore': '*.env\n**/*.log',
      'a.txt': 'a',
      'b.txt': 'b',
      'src/deep/c.txt': 'c',
      'src/deep/d.log': 'd',
    });
    expect(stage.workdir).toBe('/srv');
    expect(readdirSync(path.join(stage.root, 'srv'), { recursive: true }).toSorted()).toEqual(
      ['all', 'all/a.txt', 'all/b.txt', 'all/src', 'all/src/deep', 'all/src/deep/c.txt', 'c.txt'].toSorted(),
    );
  });

  test('runs commands in the folder and environment of the stage, and nothing of ours', () => {
    vi.stubEnv('DATABASE_URL', 'postgres://nobody');
    const stage = replayed(
      dockerfile(
        'ENV COLOUR=green HOME_OF=/data',
        `RUN mkdir out && node -e "fs.writeFileSync('out/env.json', JSON.stringify(process.env))"`,
      ),
    );
    const env = JSON.parse(readFileSync(path.join(stage.root, 'app/out/env.json'), 'utf8')) as Record<string, string>;
    expect(env).toMatchObject({ COLOUR: 'green', HOME_OF: path.join(stage.root, 'data') });
    expect(env).not.toHaveProperty('DATABASE_URL');
    expect(environmentOf(stage).PATH).not.toContain('node_modules');
    vi.unstubAllEnvs();
  });

  test('notes how the image starts', () => {
    const stage = replayed(
      dockerfile(
        'USER node',
        'EXPOSE 80 81',
        'STOPSIGNAL SIGTERM',
        'ARG VERSION=1.2',
        'ARG REVISION',
        'LABEL a=b version="${VERSION}" revision=${REVISION}',
        'HEALTHCHECK --timeout=3s CMD ["x", "y"]',
        'ENTRYPOINT ["/app/run"]',
        'CMD ["go"]',
      ),
    );
    expect(stage).toMatchObject({
      user: 'node',
      labels: { a: 'b', version: '1.2', revision: '' },
      healthcheck: ['x', 'y'],
      entrypoint: ['/app/run'],
      command: ['go'],
    });
  });

  test('begins with the image that an argument names, pinned or not', () => {
    const pinned = `ARG NODE=node:24-slim@sha256:${'ab'.repeat(32)}\nFROM \${NODE} AS one\nWORKDIR /srv`;
    expect(replayed({ Dockerfile: pinned }).workdir).toBe('/srv');
    expect(() => replayed({ Dockerfile: pinned.replace('sha256:ab', 'sha256:a') })).toThrow('can be replayed');
  });

  test('changes the mode of files, and their owner where it may', () => {
    const stage = replayed(dockerfile('WORKDIR /home/node/.muster', 'RUN chown 1000:0 . && chmod 770 .'));
    const { mode, uid } = statSync(path.join(stage.root, 'home/node/.muster'));
    expect(mode & 0o777).toBe(0o770);
    expect(uid).toBe(process.getuid?.() === 0 ? 1000 : process.getuid?.());
  });

  test.each([
    ['VOLUME /data', 'VOLUME: this instruction cannot be replayed'],
    ['ADD a b', 'ADD: this instruction cannot be replayed'],
    ['RUN --mount=type=cache,target=x npm ci', 'RUN: --mount cannot be replayed'],
    ['COPY missing ./', 'COPY: missing is not there'],
    ['COPY secret.env ./', 'COPY: .dockerignore keeps secret.env out'],
    ['COPY --from=nowhere a ./', 'COPY: there is no such stage'],
    ['COPY $A ./', 'COPY: variables are not understood'],
    ['RUN node -e "process.exit(3)"', 'ended with 3'],
    ['RUN apt-get install x', 'would reach beyond the stage'],
    ['RUN rm -rf /var/lib/apt', 'would reach beyond the stage'],
    ['RUN mkdir a && rm -r ../../b', 'would reach beyond the stage'],
    ['RUN chown node:0 .', 'by number'],
    ['RUN chown 1000:0 /home', 'would reach beyond the stage'],
    ['LABEL a=${B}', 'there is no ARG B'],
    ['ARG B=1\nLABEL a=$B', 'only variables like'],
    // An argument before the first FROM is for FROM alone.
    ['LABEL a=${BASE}', 'there is no ARG BASE'],
    ['FROM debian', 'only node:<major>-slim can be replayed'],
  ])('fails on %s', (line, message) => {
    expect(() => replayed({ ...dockerfile(line), '.dockerignore': '*.env', 'secret.env': 's' })).toThrow(message);
  });
});

describe('the Dockerfile of this project', () => {
  const instructions = parseDockerfile(readFileSync(path.join(PROJECT, 'Dockerfile'), 'utf8'));

  test('copies only what is there and in the context', () => {
    const ignored = dockerignore(readFileSync(path.join(PROJECT, '.dockerignore'), 'utf8'));
    const sources = instructions
      .filter(({ name, options }) => name === 'COPY' && !options.from)
      .flatMap(({ text }) => words(text).slice(0, -1));
    expect(sources).toContain('bin');
    expect(sources.filter((source) => !existsSync(path.join(PROJECT, source)) || ignored(source))).toEqual([]);
  });

  test('names its base in one place, and its user by number', () => {
    const bases = instructions.filter(({ name }) => name === 'FROM').map(({ text }) => words(text)[0]);
    expect(new Set(bases)).toEqual(new Set(['${NODE_IMAGE}']));
    expect(instructions.filter(({ name }) => name === 'USER').map(({ text }) => text)).toEqual(['1000']);
  });

  test('leaves out nothing that exports to S3 need', () => {
    const { dependencies } = JSON.parse(readFileSync(path.join(PROJECT, 'package.json'), 'utf8')) as {
      readonly dependencies: Readonly<Record<string, string>>;
    };
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(['@aws-sdk/client-s3', '@aws-sdk/lib-storage']));
  });

  test('keeps settings of a working folder out of the context', () => {
    const ignored = dockerignore(readFileSync(path.join(PROJECT, '.dockerignore'), 'utf8'));
    expect(
      ['.env', '.muster/admin-token', '.git/config', 'node_modules/pg/package.json', 'dist/app.js'].filter(
        (file) => !ignored(file),
      ),
    ).toEqual([]);
  });
});
