import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { callsAsCommands, commandOfAction } from '../../src/cli/calls-as-commands.js';
import { ADVICE } from '../../src/core/advice.js';
import { causeOf, ISSUE_ANCHORS } from '../../src/core/issue-causes.js';
import { runMuster } from './run-muster.js';

const SOURCES = fileURLToPath(new URL('../../src', import.meta.url));
const CALL = /\b(?:GET|POST|DELETE) \/api/;

test('a call becomes the command that makes it, with its options', () => {
  expect(callsAsCommands('There is no run x: GET /api/runs lists them.')).toBe('There is no run x: `muster runs` lists them.');
  expect(callsAsCommands('onboard it first (POST /api/companies).')).toBe('onboard it first (`muster onboard`).');
  expect(callsAsCommands('POST /api/companies/test/5f0c/resume ends it')).toBe(
    '`muster resume --environment test --company 5f0c` ends it',
  );
  expect(callsAsCommands('GET /api/holds?status=open shows it; GET /api/elsewhere too')).toBe(
    '`muster holds --status open` shows it; GET /api/elsewhere too',
  );
  expect(commandOfAction({ method: 'POST', path: '/api/syncs', body: { issue_id: 'i1' } })).toBe('muster sync --issue i1');
  expect(commandOfAction({ method: 'POST', path: '/api/syncs', body: { status: 'failed', environment: 'test' } })).toBe(
    'muster sync --failed --environment test',
  );
});

test('no advice, and no error of any file, leaves a call in what the CLI prints', () => {
  const errors = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('generated'))
    .flatMap((file) =>
      readFileSync(path.join(SOURCES, file), 'utf8')
        .split('\n')
        .filter((line) => /Error\(|There is no /.test(line) && CALL.test(line)),
    );
  expect(errors.length).toBeGreaterThan(5);
  const advice = [...Object.values(ADVICE), ...ISSUE_ANCHORS.map((anchor) => causeOf(anchor).advice)];
  for (const text of [...errors, ...advice]) expect(callsAsCommands(text)).not.toMatch(CALL);
});

test('the action of every issue is a command with options that it has', async () => {
  const commands = new Set(
    ISSUE_ANCHORS.map((anchor) => commandOfAction(causeOf(anchor).action({ id: randomUUID(), environment: 'test' }))),
  );
  expect(commands.size).toBeGreaterThan(5);
  for (const command of commands) {
    const [muster, ...words] = command.split(' ');
    expect([muster, command]).toEqual(['muster', expect.not.stringMatching(CALL)]);
    const names = words.slice(0, words.findIndex((word) => word.startsWith('--')) >>> 0);
    const isGroup = ['holds', 'runs', 'schema', 'quarantined-tokens', 'issues', 'notifications'].includes(names.join(' '));
    const { code, stdout } = await runMuster([...names, ...(isGroup ? ['list'] : []), '--help']);
    expect([command, code]).toEqual([command, 0]);
    for (const option of words.filter((word) => word.startsWith('--')))
      expect([command, stdout]).toEqual([command, expect.stringContaining(option)]);
  }
});
