import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkCertificates } from '../../../src/certificates/check.js';
import { type AdminFixture, startAdmin } from '../../api/admin-fixture.js';
import { makeUnsigned, signAll, someSigner } from '../../certificates/certificate-fixture.js';
import { companyIdOf } from '../../support/company-ids.js';
import { PageClient } from '../page-client.js';

const HOSTILE = `Fjord & <script>alert(1)</script> "Sønn"`;

let admin: AdminFixture;
let viewer: PageClient;
beforeAll(async () => {
  admin = await startAdmin();
  await makeUnsigned(admin.db, { companies: 2, nights: 2 });
  await signAll(admin.db, await someSigner());
  await admin.addCompany({ environment: 'test', companyId: companyIdOf(1) });
  await admin.db.prisma.company.updateMany({ data: { name: HOSTILE } });
  const { json } = await admin.call('POST', '/api/tokens', { name: 'auditor', role: 'viewer' });
  viewer = await PageClient.signedIn(admin.url, json.token);
});
afterAll(() => admin.stop());

const linksOf = (html: string, ending: string) =>
  [...html.matchAll(/href="(\/certificates\/\d+[^"]*)"/g)].map(([, href]) => href!).filter((href) => href.endsWith(ending));

test('a viewer finds the certificates of a company by its name, of a list and a day', async () => {
  const found = await viewer.open('/certificates?company=fjord&resource=employees');
  expect(found.status).toBe(200);
  expect(linksOf(found.html, '/jws')).toHaveLength(2);
  expect(found.html).toContain('Fjord &amp; &lt;script>');
  expect(found.html.replaceAll(/href="[^"]*"|curl[^<]*/g, '')).not.toContain(companyIdOf(1));
  expect((await viewer.open('/certificates?company=fjord&resource=employees&day=2020-01-01')).html).toContain(
    'No certificate matches.',
  );
});

test('a certificate says what is claimed, by which proof, and how it is checked', async () => {
  const [jws] = linksOf((await viewer.open('/certificates?company=fjord&resource=employees')).html, '/jws');
  const page = await viewer.open(jws!.replace('/jws', ''));
  expect(page.status).toBe(200);
  for (const text of ['This installation states', 'What it rests on', 'How to check it', 'Download as JWS', 'Download the keys'])
    expect(page.html).toContain(text);
  expect(page.html).toContain('4 of these rows were not in the service any more.');
  expect(page.html).not.toContain('<script>alert');
});

test('both files are downloaded, and check each other', async () => {
  const [path] = linksOf((await viewer.open('/certificates?company=fjord&resource=employees')).html, '/jws');
  const [certificate, keys] = [await viewer.open(path!), await viewer.open(path!.replace('/jws', '/jwks'))];
  const name = (headers: Headers) => /^attachment; filename="([\w.-]+)"$/.exec(headers.get('content-disposition')!)![1]!;
  expect(name(keys.headers)).toBe(`${name(certificate.headers)}.jwks.json`);
  expect(name(certificate.headers)).toMatch(/^Fjord-script-alert-1-script-Sonn_employees_\d{4}-\d\d-\d\d_\d+\.jws$/);
  expect([certificate, keys].map(({ headers }) => headers.get('content-type'))).toEqual(['application/jose', 'application/json']);
  const given = [{ where: 'the file', jws: certificate.html.replace(/\n$/, '') }];
  const { signed, findings } = await checkCertificates(given, JSON.parse(keys.html));
  expect([findings, signed.length]).toEqual([[], 1]);
});

test('a certificate that there is not is said to be missing, and a stranger sees none', async () => {
  for (const path of ['/certificates/999999', '/certificates/999999/jws', '/certificates/999999/jwks']) {
    const { status, html } = await viewer.open(path);
    expect([status, html.includes('No such certificate')]).toEqual([404, true]);
  }
  const stranger = await fetch(`${admin.url}/certificates/1/jws`, { redirect: 'manual' });
  expect(stranger.status).toBe(302);
});
