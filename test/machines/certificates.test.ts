import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chainOf, changedTexts, exampleOf, someSigner } from '../certificates/certificate-fixture.js';
import { pythonEnvironment, runProgram } from '../support/python-environment.js';

// The lines of docs/certificates.md by which somebody checks a certificate in another language, run as they stand.

const DOCUMENT = readFileSync('docs/certificates.md', 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'muster-certificates-'));
const at = (name: string) => join(folder, name);

/** Runs the example over many files in one process; prints the name of each that it lets pass. */
const OVER_MANY = `
import contextlib, io, json, pathlib, sys
code = compile(pathlib.Path(sys.argv[1]).read_text(), "example", "exec")
files, keys = json.load(open(sys.argv[2])), sys.argv[3]
for number, text in enumerate(files):
    pathlib.Path(sys.argv[4]).write_bytes(text.encode("latin1"))
    sys.argv[1:] = [sys.argv[4], keys, "", sys.argv[4]]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, {})
        print(number, "holds")
    except Exception:
        pass
`;

let chain: string[];
let x: string;
let python: string;
beforeAll(async () => {
  python = join(await pythonEnvironment(fileURLToPath(new URL('requirements.txt', import.meta.url))), 'python');
  const signer = await someSigner();
  chain = await chainOf(signer, 3);
  ({ x } = signer.publicKey);
  writeFileSync(at('keys.json'), JSON.stringify({ keys: [(await someSigner()).publicKey, signer.publicKey] }));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('Python checks a chain, and finds each changed byte and each missing certificate', async () => {
  writeFileSync(at('example.py'), exampleOf(DOCUMENT, 'python'));
  writeFileSync(at('many.py'), OVER_MANY);
  const run = (...args: string[]) => runProgram(python, args, process.env, 80_000);
  writeFileSync(at('chain'), `${chain.join('\n')}\n`);
  const whole = await run(at('example.py'), at('chain'), at('keys.json'));
  expect(whole).toMatchObject({ code: 0 });
  expect(whole.output.match(/verified 2026-11-\d\dT02:00:00.100Z 60 records/g)).toHaveLength(3);

  const one = `${chain[0]!}\n`;
  const texts = [one, ...changedTexts(one), `${chain[0]!}\n${chain[2]!}\n`];
  writeFileSync(at('texts.json'), JSON.stringify(texts));
  const many = await run(at('many.py'), at('example.py'), at('texts.json'), at('keys.json'), at('text'));
  expect(many).toEqual({ code: 0, output: '0 holds\n' });
});

test('openssl checks one, and finds changed bytes in each of its parts', async () => {
  writeFileSync(at('example.sh'), exampleOf(DOCUMENT, 'sh'));
  const check = (text: string) => {
    writeFileSync(at('one'), text);
    return runProgram('sh', [at('example.sh'), at('one'), x], process.env, 20_000);
  };
  const one = `${chain[0]!}\n`;
  const right = await check(one);
  expect(right).toMatchObject({ code: 0 });
  expect(right.output).toContain('"resource":"employees"');
  // A process for each byte would take minutes; the last characters of each part have bits that decoders ignore.
  const changed = [...changedTexts(one)];
  for (const text of changed.filter((_, n) => n % 61 === 0 || n > changed.length - 8))
    expect((await check(text)).code, text).not.toBe(0);
});
