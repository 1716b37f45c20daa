import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { HOME, runMuster } from '../run-muster.js';

/** What bash offers behind each line, by the function that the script gives to `complete`. */
async function offered(script: string, ...lines: (readonly string[])[]): Promise<string[][]> {
  const file = join(HOME, 'completion.bash');
  writeFileSync(file, script);
  const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
  const asks = lines.map(
    (words) =>
      `COMP_WORDS=(muster ${words.map(quoted).join(' ')}); COMP_CWORD=${words.length}; "$f" muster; echo "\${COMPREPLY[*]}"`,
  );
  const program = ['set -u', `source ${quoted(file)}`, 'f=$(complete -p muster); f=${f##*-F }; f=${f%% *}', ...asks].join('\n');
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', program]);
  expect(stderr).toBe('');
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter(Boolean));
}

test('bash completes commands, those of groups, and options', async () => {
  const { stdout: script, code } = await runMuster(['completion', 'bash']);
  expect(code).toBe(0);
  const [all, begun, group, ofGroup, ofCommand, afterValue, help] = await offered(
    script,
    [''],
    ['rot'],
    ['runs', ''],
    ['runs', '--st'],
    ['runs', 'show', '-'],
    ['sync', '--environment', 'test', '--comp'],
    ['help', 'quar'],
  );
  const { stdout: helpText } = await runMuster(['--help']);
  const commands = [...helpText.matchAll(/^ {2}([a-z][a-z-]+)/gm)].map(([, name]) => name);
  expect(commands.length).toBeGreaterThan(20);
  expect(all!.toSorted()).toEqual(commands.toSorted());
  expect(begun).toEqual(['rotate-keys']);
  expect(group).toEqual(['list', 'show', 'cancel', 'help']);
  expect(ofGroup).toEqual(['--status']);
  expect(ofCommand!.toSorted()).toEqual(['--help', '--json', '--url', '-h']);
  expect(afterValue).toEqual(['--company']);
  expect(help).toEqual(['quarantined-tokens']);
});

test('values are left to bash, and nothing that is typed is run', async () => {
  const { stdout: script } = await runMuster(['completion', 'bash']);
  const made = join(HOME, 'made-by-tab');
  const [value, behind, alike] = await offered(
    script,
    ['sync', '--company', ''],
    ['sync', '--company', `$(touch ${made})`, '--wa'],
    ['holds', '--status', 'list', 'app'],
  );
  expect(value).toEqual([]);
  expect(behind).toEqual(['--wait']);
  expect(alike).toEqual(['approve', 'approve-grants']);
  expect(existsSync(made)).toBe(false);
});

test.each(['zsh', 'fish'])('the script of %s has every command', async (shell) => {
  const { stdout, code } = await runMuster(['completion', shell]);
  expect(code).toBe(0);
  for (const name of ['doctor', 'runs show', 'quarantined-tokens delete']) expect(stdout).toContain(` ${name}'`);
});

test('another shell is refused', async () => {
  expect(await runMuster(['completion', 'nosh'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('bash, zsh, fish') as string,
  });
});
