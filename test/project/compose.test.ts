import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { pairs, parseDockerfile } from '../../scripts/docker/dockerfile.js';
import { SETTING_NAMES } from '../../src/config/settings.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(path.join(PROJECT, file), 'utf8');

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly deploy?: { readonly replicas?: number };
}

const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, { build }]) => build !== undefined);
const settings = SETTING_NAMES;

describe('docker-compose.yml', () => {
  test('runs commands that exist', () => {
    const help = spawnSync(path.join(PROJECT, 'bin/muster'), ['--help'], { encoding: 'utf8' });
    expect(help.stderr).toBe('');
    const commands = [...help.stdout.matchAll(/^ {2}([a-z-]+)\b/gm)].map(([, command]) => command);
    expect(ours.map(([, { command }]) => command?.[0])).toEqual(['migrate', 'api', 'worker']);
    for (const [, { command }] of ours) expect(commands).toContain(command?.[0]);
  });

  test('names settings that exist', () => {
    for (const [, { environment }] of ours) expect(settings).toEqual(expect.arrayContaining(Object.keys(environment ?? {})));
  });

  test('hands on every variable of a provider, and of an issuer', () => {
    const provider = settings.filter((name) => /^(PRODUCTION|TEST|OIDC)_/.test(name));
    expect(provider).toHaveLength(25);
    for (const [, { environment }] of ours) expect(Object.keys(environment ?? {})).toEqual(expect.arrayContaining(provider));
  });

  test('hands on every setting but those that the image or the file itself decides', () => {
    const given = new Set(ours.flatMap(([, { environment }]) => Object.keys(environment ?? {})));
    expect(settings.filter((name) => !given.has(name)).toSorted()).toEqual(['HOST', 'MUSTER_HOME', 'PORT']);
  });

  test('waits for services that can say when they are ready', () => {
    const edges = services.flatMap(([, { depends_on = {} }]) => Object.entries(depends_on));
    expect(edges.length).toBeGreaterThan(0);
    for (const [name, { condition }] of edges) {
      const service = compose.services[name];
      if (condition === 'service_healthy') expect(service?.healthcheck?.test).toBeDefined();
      else expect({ name, condition }).toEqual({ name: 'migrate', condition: 'service_completed_successfully' });
    }
    for (const name of ['api', 'worker']) expect(compose.services[name]?.depends_on).toHaveProperty('migrate');
  });

  test('pins every image to a version', () => {
    for (const [, { image }] of services) expect(image).toMatch(/^[a-z]+:(?!latest)[\w.-]+$/);
  });

  test('keeps data in named volumes', () => {
    const used = services.flatMap(([, { volumes = [] }]) => volumes.map((volume) => volume.split(':')[0]));
    expect(used.toSorted()).toEqual(Object.keys(compose.volumes).toSorted());
  });

  test('lets Redis lose nothing, and only the API listen', () => {
    expect(compose.services.redis?.command?.join(' ')).toContain('--maxmemory-policy noeviction');
    expect(services.filter(([, { ports }]) => ports).map(([name]) => name)).toEqual(['api']);
    expect(compose.services.worker?.healthcheck).toEqual({ disable: true });
    expect(compose.services.worker?.deploy?.replicas).toBeGreaterThan(1);
  });

  test('has its variables in .env.example, those it requires first', () => {
    const used = [...read('docker-compose.yml').matchAll(/\$\{(\w+)(:[?-])/g)];
    const variables = [...read('.env.example').matchAll(/^(\w+)=/gm)].map(([, name]) => name ?? '');
    expect(new Set(variables)).toEqual(new Set(used.map(([, name]) => name)));
    const required = new Set(used.filter(([, , sign]) => sign === ':?').map(([, name]) => name));
    expect(new Set(variables.slice(0, required.size))).toEqual(required);
  });
});

test('the image sets settings that exist', () => {
  const env = parseDockerfile(read('Dockerfile')).filter(({ name }) => name === 'ENV');
  const names = env.flatMap(({ text }) => Object.keys(pairs(text))).filter((name) => name !== 'NODE_ENV');
  expect(names).toContain('HOST');
  expect(settings).toEqual(expect.arrayContaining(names));
});
