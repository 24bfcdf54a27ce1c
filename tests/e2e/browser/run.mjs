// Runs scenarios in one Chromium, each in a fresh page, and prints a JSON line for each: {name, ok, error?}.
//   node run.mjs CHROMIUM '{"url": ..., "guardedUrl": ..., "key": ..., "timeout": milliseconds}'
// Exits with 3 and the reason on stderr if Chromium cannot be started.
import process from 'node:process';
import { chromium } from 'playwright-core';
import { scenarios } from './scenarios.mjs';

const [executablePath, text] = process.argv.slice(2);
const given = JSON.parse(text);

let browser;
try {
  const args = process.getuid() === 0 ? ['--no-sandbox'] : []; // its sandbox does not work for root
  browser = await chromium.launch({ executablePath, args, timeout: given.timeout });
} catch (failure) {
  process.stderr.write(`${failure.message}\n`);
  process.exit(3);
}
for (const { name, options, run } of scenarios) {
  const context = await browser.newContext(options ?? {});
  context.setDefaultTimeout(given.timeout);
  const page = await context.newPage();
  // A page that works logs no error; what scripts injected would show is a dialog or a console message.
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('dialog', async (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) complaints.push(message.text());
  });
  page.on('request', (request) => {
    const { origin } = new URL(request.url());
    if (![given.url, given.guardedUrl].includes(origin)) complaints.push(`request to ${request.url()}`);
  });
  let error = null;
  try {
    await run({ page, context, complaints, ...given });
    if (complaints.length > 0) error = complaints.join('\n');
  } catch (failure) {
    error = `${failure.stack}\n${complaints.join('\n')}`;
  }
  process.stdout.write(`${JSON.stringify({ name, ok: error === null, error })}\n`);
  await context.close();
}
await browser.close();
