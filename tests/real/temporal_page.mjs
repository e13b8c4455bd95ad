// Opens the page of an activity in Temporal's web page, as a person does, prints what it says, and cancels the activity.
//
//     node temporal_page.mjs PLAYWRIGHT CHROMIUM URL TEXT
//
// TEXT is what the page must show before it is read.
const [playwright, program, url, text] = process.argv.slice(2);
const { chromium } = await import(playwright);
const flags = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath: program, args: flags });
try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 1100 } });
    page.setDefaultTimeout(20000);
    await page.goto(url, { waitUntil: 'domcontentloaded' });
    await page.getByText(text).first().waitFor();
    console.log(await page.evaluate(() => document.body.innerText));
    await page.getByRole('button', { name: 'More Actions' }).click();
    await page.getByRole('menuitem', { name: /cancel/i }).click();
    const dialog = page.getByRole('dialog').filter({ visible: true });
    await dialog.getByRole('button', { name: /confirm|request|cancel activity/i }).last().click();
    await dialog.waitFor({ state: 'hidden' });
} finally {
    await browser.close();
}
