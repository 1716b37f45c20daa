// Every GET address of the API, made of its OpenAPI document, and every page: what looks at all of them misses none that is added.

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: { readonly enum?: readonly string[]; readonly const?: string };
}

interface OpenApiDocument {
  readonly paths: Readonly<Record<string, { readonly get?: { readonly parameters?: readonly Parameter[] } }>>;
}

export interface AddressValues {
  /** For the parameters of paths: by the parameter's name, or by the whole path where it is `id`. */
  readonly path: Readonly<Record<string, string>>;
  /** For the filters that name no values of their own. */
  readonly query: Readonly<Record<string, readonly string[]>>;
}

/** Not filters: the first two say which page of a list, and a walk along the list gives them. */
const NO_FILTERS = ['cursor', 'limit'];
/** A stream goes on for as long as its run does; a diff is of two runs of one list, and test/api/runs/run-diff.test.ts has the plans of its statements. */
const LEFT_OUT = /\/(events|diff)$/;

/**
 * Addresses of the API: each list without a filter, with each value of each filter, with each two filters (`pairs`), and with all of them. Throws for a
 * parameter of which no value is known.
 */
export function everyAddress(document: OpenApiDocument, values: AddressValues, { pairs }: { pairs: boolean }): string[] {
  return Object.entries(document.paths).flatMap(([path, { get }]) =>
    get && !LEFT_OUT.test(path) ? filtered(path, get.parameters ?? [], values, { pairs, everyValue: true }) : [],
  );
}

/** The same of pages, whose lists have the filters of the API's list of the same name: with each value of a filter (`everyValue`), or with its first. */
export function everyPage(
  pages: readonly string[],
  document: OpenApiDocument,
  values: AddressValues,
  { everyValue = true }: { everyValue?: boolean } = {},
): string[] {
  return pages.flatMap((page) => {
    if (LEFT_OUT.test(page)) return [];
    const path = page.replaceAll(/:(\w+)/g, '{$1}');
    return filtered(path, document.paths[`/api${path}`]?.get?.parameters ?? [], values, { pairs: false, everyValue });
  });
}

function filtered(
  path: string,
  parameters: readonly Parameter[],
  values: AddressValues,
  { pairs, everyValue }: { pairs: boolean; everyValue: boolean },
): string[] {
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => known(values.path[name] ?? values.path[path], name, path));
  const filters = parameters
    .filter((parameter) => parameter.in === 'query' && !NO_FILTERS.includes(parameter.name))
    .map(({ name, schema }) => {
      const own = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
      return known(own ?? values.query[name], name, path).map((value) => [name, value] as const);
    });
  const firsts = filters.map(([first]) => first!);
  const choices = [
    [],
    ...(everyValue ? filters.flat() : firsts).map((filter) => [filter]),
    ...(pairs ? firsts.flatMap((one, n) => firsts.slice(n + 1).map((other) => [one, other])) : []),
    firsts,
  ];
  return [...new Set(choices.map((choice) => withQuery(address, Object.fromEntries(choice))))];
}

/** The address with further parameters. */
export function withQuery(address: string, more: Readonly<Record<string, string>>): string {
  const [path, query] = address.split('?');
  const all = new URLSearchParams(query);
  for (const [name, value] of Object.entries(more)) all.set(name, value);
  return all.size === 0 ? path! : `${path}?${all.toString()}`;
}

/** Where a list goes on, by the text of an answer; undefined where it does not, and for every other answer. */
export function nextCursor(answer: string): string | undefined {
  return /"next_cursor":"([^"]+)"/.exec(answer)?.[1];
}

function known<T>(value: T | undefined, name: string, path: string): T {
  if (value === undefined) throw new Error(`Nobody has said what ${name} of ${path} may be: add it to the values of the caller.`);
  return value;
}
