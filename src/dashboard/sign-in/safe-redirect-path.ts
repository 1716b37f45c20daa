/** The path of a page to continue with. Anything else, above all another site, becomes the first page. */
export function safeRedirectPath(text: unknown): string {
  if (typeof text !== 'string' || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes('\\')) return '/';
  const { origin, pathname, search } = new URL(text, 'http://own');
  return origin === 'http://own' && !/^\/(\/|log(in|out)\b)/.test(pathname) ? pathname + search : '/';
}
