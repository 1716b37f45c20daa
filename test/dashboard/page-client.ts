import { TOKEN } from '../api/admin-fixture.js';

export interface Shown {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** Where a redirect leads. */
  readonly location: string | null;
}

/** A browser without scripts: keeps the cookie, follows no redirect by itself, and sends the forms of the page that it saw last. */
export class PageClient {
  readonly #url: string;
  cookie: string | undefined;
  html = '';

  constructor(url: string) {
    this.#url = url;
  }

  /** Signed in with the token of the administrator, or with the one that is given. */
  static async signedIn(url: string, token = TOKEN): Promise<PageClient> {
    const client = new PageClient(url);
    const answer = await client.send('/login', { token });
    if (answer.status !== 303) throw new Error(`Nobody was signed in: ${answer.status}`);
    return client;
  }

  get csrf(): string {
    return /name="csrf" value="([^"]+)"/.exec(this.html)?.[1] ?? '';
  }

  open(path: string, headers: Record<string, string> = {}): Promise<Shown> {
    return this.#fetch(path, { headers });
  }

  send(path: string, fields: Record<string, string> | [string, string][], headers: Record<string, string> = {}): Promise<Shown> {
    return this.#fetch(path, { method: 'POST', body: new URLSearchParams(fields), headers });
  }

  /** Presses the button of a form on the page that was opened last. */
  act(name: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Shown> {
    return this.send(`/act/${name}`, { ...fields, csrf: this.csrf }, headers);
  }

  async #fetch(path: string, { headers, ...init }: RequestInit): Promise<Shown> {
    const own = { 'sec-fetch-site': 'same-origin', ...(this.cookie && { cookie: this.cookie }) };
    const response = await fetch(this.#url + path, { redirect: 'manual', headers: { ...own, ...(headers as object) }, ...init });
    const set = response.headers.get('set-cookie');
    if (set) this.cookie = set.includes('Max-Age=0') ? undefined : set.split(';')[0];
    const html = await response.text();
    if (html.includes('name="csrf"')) this.html = html;
    return { status: response.status, headers: response.headers, html, location: response.headers.get('location') };
  }
}
