# cmake -D ROOT=DIR -D FILES=a.h;b.h -D OUTPUT=x.cpp -P EmbedFiles.cmake: a C++ file that holds the files' text under
# their paths in the tree.
set(table "")
foreach(file IN LISTS FILES)
  file(READ ${ROOT}/${file} text)
  string(FIND "${text}" ")embedded\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${file} contains the delimiter of its own embedding")
  endif()
  string(APPEND table "    {\"${file}\", R\"embedded(${text})embedded\"sv},\n")
endforeach()
file(WRITE ${OUTPUT}
"// Made by EmbedFiles.cmake.
#include \"codegen/Clang/EmbeddedFiles.h\"

using namespace std::string_view_literals; // lengths that no one counts

static constexpr grok::codegen::EmbeddedFile kFiles[] = {
${table}};

std::span<const grok::codegen::EmbeddedFile> grok::codegen::embeddedFiles() { return kFiles; }
")
