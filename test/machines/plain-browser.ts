interface Seen {
  readonly status: number;
  readonly url: string;
  readonly html: string;
}

/** A browser without scripts that a test can look into: its cookies, and each address on its way. */
export class PlainBrowser {
  /** By host, then by name. */
  readonly cookies = new Map<string, Map<string, string>>();

  /** Follows redirects to a page, or to an address that `stop` holds up before it is asked for. */
  async open(
    url: string,
    { form, stop }: { form?: Record<string, string>; stop?: (url: string) => boolean } = {},
  ): Promise<Seen> {
    let [next, body] = [url, form && new URLSearchParams(form)];
    for (;;) {
      if (stop?.(next)) return { status: 0, url: next, html: '' };
      const response = await this.#send(next, body);
      const location = response.headers.get('location');
      if (location === null) return { status: response.status, url: next, html: await response.text() };
      [next, body] = [new URL(location, next).href, undefined];
    }
  }

  async #send(url: string, body: URLSearchParams | undefined): Promise<Response> {
    const { host, pathname } = new URL(url);
    const jar = this.cookies.get(host) ?? new Map<string, string>();
    this.cookies.set(host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie }, ...(body && { method: 'POST', body }) });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      const isGone = /max-age=0|expires=thu, 01 jan 1970/i.test(line);
      if (isGone && (/path=\/(;|$)/i.test(line) || line.includes(`path=${pathname}`))) jar.delete(name!);
      else if (!isGone) jar.set(name!, value!);
    }
    return response;
  }

  /** Signs in by the provider's own pages, from the link of ours on. */
  async signInThere(login: string, start: string, isBack: (url: string) => boolean): Promise<Seen> {
    let page = await this.open(start, { stop: isBack });
    for (const form of [{ prompt: 'login', login, password: 'any' }, { prompt: 'consent' }]) {
      const action = /action="([^"]+)"/.exec(page.html)?.[1];
      if (action === undefined) break;
      page = await this.open(new URL(action, page.url).href, { form, stop: isBack });
    }
    return page;
  }
}
