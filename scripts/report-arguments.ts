import path from 'node:path';

/** Has vitest write what came of each test into the folder that TEST_REPORTS names, beside what it prints; nothing where it names none. */
export function reportArguments(name: string): string[] {
  const folder = process.env['TEST_REPORTS'];
  if (folder === undefined) return [];
  return ['--reporter=default', '--reporter=json', `--outputFile.json=${path.join(folder, `${name}.json`)}`];
}
