import { escapeHtml } from '../core/escape-html.js';

/** The part of an OpenAPI 3.1 document that the page shows. */
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas?: Readonly<Record<string, Schema>> };
}

interface Operation {
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** The API as one readable page: no script, nothing loaded from elsewhere. */
export function docsPage({ info, tags = [], paths, components }: ApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation, id: slug(`${method} ${path}`) })),
  );
  const groups = tags.map((tag) => ({
    ...tag,
    operations: operations.filter(({ operation }) => operation.tags?.includes(tag.name)),
  }));
  const models = Object.entries(components.schemas ?? {});
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(info.title)}</title><style>${DOCS_STYLE}</style></head><body>
<nav><b>${escapeHtml(info.title)}</b><small>version ${escapeHtml(info.version)} · <a href="openapi.json">OpenAPI</a></small>
${groups.map((group) => `<h2>${escapeHtml(group.name)}</h2>${group.operations.map(({ id, method, path }) => `<a href="#${id}"><i class="${method}">${method}</i> ${escapeHtml(path)}</a>`).join('')}`).join('')}
<h2>models</h2>${models.map(([name]) => `<a href="#${name}">${escapeHtml(name)}</a>`).join('')}</nav>
<main><h1>${escapeHtml(info.title)}</h1><p>${prose(info.description)}</p>
${groups.map((group) => `<h2>${escapeHtml(group.name)}</h2><p>${prose(group.description)}</p>${group.operations.map(section).join('')}`).join('')}
<h2>Models</h2>${models.map(([name, schema]) => `<section id="${name}"><h3>${escapeHtml(name)}</h3><p>${prose(schema.description)}</p>${members(schema)}</section>`).join('')}
</main></body></html>`;
}

function section({ path, method, operation, id }: { path: string; method: string; operation: Operation; id: string }): string {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const body = requestBody && schemaOf(requestBody.content);
  return `<section id="${id}"><h3><i class="${method}">${method}</i> <code>${escapeHtml(path)}</code></h3>
<p><b>${prose(summary)}.</b> ${prose(description)}</p>
${parameters.length > 0 ? table(parameters.map(({ name, required, schema, in: place }) => row(name, schema, required === true, place))) : ''}
${body ? `<h4>Body</h4>${members(body)}` : ''}
<h4>Answers</h4><table>${Object.entries(responses)
    .map(
      ([status, { description: text, content }]) => `<tr><td><code>${status}</code></td><td>${answer(content, text)}</td></tr>`,
    )
    .join('')}</table></section>`;
}

function answer(content: Content | undefined, text: string | undefined): string {
  const schema = content && schemaOf(content);
  if (!schema) return prose(text === 'Default Response' ? 'no body' : text);
  return schema.properties ? members(schema) : typeOf(schema);
}

function schemaOf(content: Content): Schema | undefined {
  const schema = Object.values(content)[0]?.schema;
  return schema?.anyOf?.find(({ properties }) => properties) ?? schema;
}

function members({ properties = {}, required = [] }: Schema): string {
  return table(Object.entries(properties).map(([name, schema]) => row(name, schema, required.includes(name))));
}

function table(rows: readonly string[]): string {
  return `<table>${rows.join('')}</table>`;
}

function row(name: string, schema: Schema, required: boolean, place?: string): string {
  const notes = [
    place,
    required ? undefined : 'optional',
    schema.default === undefined ? undefined : `default ${JSON.stringify(schema.default)}`,
  ];
  return `<tr><td><code>${escapeHtml(name)}</code></td><td>${typeOf(schema)}<small>${escapeHtml(notes.filter(Boolean).join(', '))}</small></td><td>${prose(schema.description)}${
    schema.properties ? members(schema) : ''
  }${schema.items?.properties ? members(schema.items) : ''}</td></tr>`;
}

function typeOf(schema: Schema): string {
  const { $ref, type, format, anyOf, items, minimum, maximum } = schema;
  if ($ref) {
    const name = $ref.slice($ref.lastIndexOf('/') + 1);
    return `<a href="#${name}">${escapeHtml(name)}</a>`;
  }
  if (anyOf) return anyOf.map(typeOf).join(' or ');
  if (items) return `list of ${typeOf(items)}`;
  const values = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (values) return escapeHtml(values.map((value) => JSON.stringify(value)).join(' | '));
  const range = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER ? ` ${minimum ?? ''}…${maximum}` : '';
  return escapeHtml(`${format ?? [type ?? 'any JSON'].flat().join(' or ')}${range}`);
}

function prose(text = ''): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

function slug(text: string): string {
  return text.replace(/[^a-z0-9]+/gi, '-').replace(/-$/, '');
}

/** Named so that the content security policy can allow exactly this. */
export const DOCS_STYLE = `
:root{color-scheme:light dark;--line:#8883;--soft:#8881}
*{box-sizing:border-box}
body{margin:0;display:grid;grid-template-columns:20rem minmax(0,1fr);font:15px/1.55 system-ui,sans-serif}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem;border-right:1px solid var(--line);background:var(--soft)}
nav a{display:block;padding:.15rem 0;color:inherit;text-decoration:none;font-size:13px;overflow-wrap:anywhere}
nav small a{display:inline;text-decoration:underline}
nav h2{font-size:12px;text-transform:uppercase;letter-spacing:.08em;margin:1.2rem 0 .3rem;opacity:.7}
main{padding:2rem 3rem;max-width:64rem}
main h2{margin-top:3rem;border-bottom:1px solid var(--line);padding-bottom:.3rem;text-transform:capitalize}
section{margin:1.2rem 0;padding:1rem 1.2rem;border:1px solid var(--line);border-radius:.6rem;scroll-margin-top:1rem}
section:target{border-color:#4a7dff}
h3{margin:0 0 .4rem;font-size:1rem}h4{margin:.9rem 0 .2rem;font-size:.85rem;opacity:.75}p{margin:.3rem 0}
i{font:600 11px/1 ui-monospace,monospace;text-transform:uppercase;display:inline-block;min-width:3.6em;color:#3b6fe0}
i.post{color:#1d8a4e}i.delete{color:#c4412f}
code{font:13px ui-monospace,monospace}
table{border-collapse:collapse;width:100%;font-size:14px}td{padding:.3rem .8rem .3rem 0;border-top:1px solid var(--line);vertical-align:top}
td small{display:block;opacity:.65}
@media(max-width:60rem){body{display:block}nav{position:static;height:auto}main{padding:1rem}}
`;
