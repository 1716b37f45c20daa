import type { Deployment } from '../process/deployment.js';

/** Where Muster is reached from outside, as the sandbox's application has it registered: `PUBLIC_URL` and `redirectUris` of a deployment. */
export const PUBLIC_URL = 'https://muster.example';
export const CALLBACK = `${PUBLIC_URL}/oauth/callback`;

/** A person opens a connect link of the company and allows access, as a browser does. The API runs. */
export async function authorizeByLink(deployment: Deployment, companyId: string): Promise<void> {
  const made = await deployment.call('POST', `/api/companies/test/${companyId}/connect-link`);
  await allow((made.body as { url: string }).url, companyId, deployment.url);
}

/** The same with a link that is there; `address` is where the API listens, if its public address is another one. */
export async function allow(url: string, companyId: string, address = new URL(url).origin): Promise<void> {
  const link = new URL(url);
  const started = await fetch(address + link.pathname, { redirect: 'manual' });
  const cookie = started.headers.get('set-cookie')?.split(';')[0] ?? '';
  const consentPage = started.headers.get('location')!;
  const page = await (await fetch(consentPage)).text();
  const form = { consent: /name="consent" value="([^"]+)"/.exec(page)![1]!, decision: 'allow', company_id: companyId };
  const decided = await fetch(new URL('/auth/authorize', consentPage), {
    method: 'POST',
    body: new URLSearchParams(form),
    redirect: 'manual',
  });
  const back = new URL(decided.headers.get('location')!);
  const answer = await fetch(address + back.pathname + back.search, { headers: { cookie }, redirect: 'manual' });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`the callback answered ${answer.status}: ${text}`);
}
