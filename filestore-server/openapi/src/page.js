"use strict";
// Without this script, the page is complete: it only lacks the filter.
if (location.protocol.startsWith("http")) {
    const base = location.origin + location.pathname.replace(/\/docs\/?$/, "");
    for (const shown of document.querySelectorAll(".base")) shown.textContent = base;
}

const field = document.getElementById("filter");
const found = document.getElementById("found");
const lines = new Map();
for (const line of document.querySelectorAll("nav li")) lines.set(line.firstChild.hash.slice(1), line);
const articles = [...document.querySelectorAll("article")].map((article) => {
    // The refusals and the examples have the same words everywhere.
    const parts = [...article.children].filter((part) => !part.matches("details, pre"));
    return { article, text: parts.map((part) => part.textContent).join(" ").toLowerCase() };
});

function filter() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { article, text } of articles) {
        const line = lines.get(article.id);
        article.hidden = !words.every((word) => text.includes(word));
        if (line) line.hidden = article.hidden;
        if (line && !article.hidden) count += 1;
    }
    found.textContent = words.length ? `${count} of ${lines.size} operations` : "";
}

// A link to a hidden part shows all parts again, also a link to the address that the page already has.
function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || target.getClientRects().length) return;
    field.value = "";
    filter();
    target.scrollIntoView();
}
addEventListener("hashchange", reveal);
addEventListener("click", (event) => {
    if (event.target.closest('a[href^="#"]')) setTimeout(reveal);
});
field.addEventListener("input", filter);
field.parentElement.hidden = false;
filter();
