import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import type { Signer } from '../../src/certificates/certificate.js';
import { chainOf, changedTexts, exampleOf, someSigner } from './certificate-fixture.js';

// The lines for Node.js in docs/certificates.md, as they stand but for the imports: files are given to them without a disk. Those for Python and openssl
// are run by test/machines/certificates.test.ts.

const EXAMPLE = exampleOf(readFileSync('docs/certificates.md', 'utf8'), 'js').replaceAll(/^import .*\n/gm, '');
// oxlint-disable-next-line typescript/no-implied-eval
const example = new Function('createPublicKey', 'verify', 'readFileSync', 'process', 'console', EXAMPLE);

let signer: Signer;
let jws: string;
beforeAll(async () => {
  signer = await someSigner();
  [jws = ''] = await chainOf(signer, 1);
});

/** What the example prints of a certificate. */
function check(text: string, by = signer): unknown {
  let printed = '';
  const files: Readonly<Record<string, string>> = { certificate: text, keys: JSON.stringify({ keys: [by.publicKey] }) };
  const read = (name: string) => files[name]!;
  const console = { log: (line: string) => (printed = line) };
  example(createPublicKey, verify, read, { argv: ['node', 'check.mjs', 'certificate', 'keys'] }, console);
  return JSON.parse(printed);
}

function outcome(text: string, by?: Signer): 'holds' | 'refused' {
  try {
    check(text, by);
    return 'holds';
  } catch {
    return 'refused';
  }
}

test('holds of a certificate, and not with any byte of it changed', async () => {
  expect(check(`${jws}\n`)).toMatchObject({ resource: 'employees', records: 60 });
  expect(EXAMPLE.split('\n').length).toBeLessThan(21);
  for (const text of changedTexts(`${jws}\n`)) expect(outcome(text), text).toBe('refused');
});

test('does not hold by the key of somebody else, under its own name or another', async () => {
  const { publicKey } = await someSigner();
  expect(outcome(jws, { ...signer, publicKey })).toBe('refused');
  expect(() => check(jws, { ...signer, publicKey: { ...publicKey, kid: signer.publicKey.kid } })).toThrow('does not hold');
});
