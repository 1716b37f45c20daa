import { createHash } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { escapeHtml } from '../../core/escape-html.js';
import { causeOf, ISSUE_ANCHORS } from '../../core/issue-causes.js';

/** The path of the guide, below the public address. */
export const ISSUE_GUIDE_PATH = '/docs/issues';

/** A constant, so that the content security policy can allow exactly this style. */
const STYLE = `
:root{color-scheme:light dark}
body{max-width:44rem;margin:0 auto;padding:2rem 1.25rem;font:1rem/1.6 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem}h2{margin:2rem 0 .25rem;font-size:1.1rem;line-height:1.4}p{margin:.25rem 0}code{font-size:.9em}
section:target{outline:2px solid;outline-offset:.75rem;border-radius:.25rem}
`;

const CONTENT_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`;

/** Serves a page that explains each cause of an issue: a link to it works wherever Muster runs. It holds no secret. */
export const issueGuide: FastifyPluginAsync = async (pages) => {
  pages.get(ISSUE_GUIDE_PATH, { schema: { hide: true } }, async (_request, reply) =>
    reply.header('content-security-policy', CONTENT_POLICY).type('text/html; charset=utf-8').serializer(String).send(PAGE),
  );
};

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Issues · Muster</title><style>${STYLE}</style></head>
<body><main><h1>Issues, and what to do about them</h1>
${ISSUE_ANCHORS.map(sectionOf).join('\n')}
</main></body></html>
`;

function sectionOf(anchor: string): string {
  const { title, advice, action } = causeOf(anchor);
  const { method, path, body } = action({ id: '{id}', environment: 'production' });
  const call = `${method} ${path}${body ? ` ${JSON.stringify(body)}` : ''}`;
  return `<section id="${anchor}"><h2>${escapeHtml(title)}</h2><p>${escapeHtml(advice)}</p>
<p>For the companies of an issue: <code>${escapeHtml(call)}</code></p></section>`;
}
