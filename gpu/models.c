#include "gpu/models.h"

#include <stddef.h>
#include <string.h>

#include "base/str.h"

static const struct gpu_model models[] = {
	/* Blackwell */
	{"B300 SXM6 AC", 275040, 103, "nvidia", true, true},
	{"GB300", 284208, 103, "nvidia", true, true},
	{"B200", 183359, 100, "nvidia", true, true},
	{"GB200", 189471, 100, "nvidia", true, true},
	{"RTX PRO 6000 Blackwell Server Edition", 97887, 120, "nvidia", true, false},
	{"RTX PRO 6000 Blackwell Workstation Edition", 97887, 120, "nvidiartx", false, false},
	{"RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887, 120, "nvidiartx", false, false},
	{"RTX PRO 5000 Blackwell", 48935, 120, "nvidiartx", false, false},
	{"RTX PRO 4500 Blackwell", 32623, 120, "nvidiartx", false, false},
	{"RTX PRO 4000 Blackwell", 24467, 120, "nvidiartx", false, false},
	{"GeForce RTX 5090", 32607, 120, "geforce", false, false},
	{"GeForce RTX 5080", 16303, 120, "geforce", false, false},
	{"GeForce RTX 5070 Ti", 16303, 120, "geforce", false, false},
	{"GeForce RTX 5070", 12227, 120, "geforce", false, false},
	{"GeForce RTX 5060 Ti", 8151, 120, "geforce", false, false},
	{"GeForce RTX 5060", 8151, 120, "geforce", false, false},
	/* Hopper */
	{"GH200 480GB", 97871, 90, "nvidia", true, true},
	{"GH200 144G HBM3e", 146831, 90, "nvidia", true, true},
	{"H200", 143771, 90, "nvidia", true, true},
	{"H200 NVL", 143771, 90, "nvidia", true, true},
	{"H100 80GB HBM3", 81559, 90, "nvidia", true, true},
	{"H100 PCIe", 81559, 90, "nvidia", true, true},
	{"H100 NVL", 95830, 90, "nvidia", true, true},
	{"H800", 81559, 90, "nvidia", true, true},
	{"H800 PCIe", 81559, 90, "nvidia", true, true},
	{"H20", 97871, 90, "nvidia", true, true},
	/* Ada */
	{"L40S", 46068, 89, "nvidia", true, false},
	{"L40", 46068, 89, "nvidia", true, false},
	{"L20", 46068, 89, "nvidia", true, false},
	{"L4", 23034, 89, "nvidia", true, false},
	{"RTX 6000 Ada Generation", 49140, 89, "nvidiartx", false, false},
	{"RTX 5000 Ada Generation", 32760, 89, "nvidiartx", false, false},
	{"RTX 4500 Ada Generation", 24570, 89, "nvidiartx", false, false},
	{"RTX 4000 Ada Generation", 20475, 89, "nvidiartx", false, false},
	{"RTX 4000 SFF Ada Generation", 20475, 89, "nvidiartx", false, false},
	{"RTX 2000 Ada Generation", 16380, 89, "nvidiartx", false, false},
	{"GeForce RTX 4090", 24564, 89, "geforce", false, false},
	{"GeForce RTX 4090 D", 24564, 89, "geforce", false, false},
	{"GeForce RTX 4080 SUPER", 16376, 89, "geforce", false, false},
	{"GeForce RTX 4080", 16376, 89, "geforce", false, false},
	{"GeForce RTX 4070 Ti SUPER", 16376, 89, "geforce", false, false},
	{"GeForce RTX 4070 Ti", 12282, 89, "geforce", false, false},
	{"GeForce RTX 4070 SUPER", 12282, 89, "geforce", false, false},
	{"GeForce RTX 4070", 12282, 89, "geforce", false, false},
	{"GeForce RTX 4060 Ti", 8188, 89, "geforce", false, false},
	{"GeForce RTX 4060", 8188, 89, "geforce", false, false},
	/* Ampere */
	{"A100-SXM4-80GB", 81920, 80, "nvidia", true, true},
	{"A100-SXM4-40GB", 40960, 80, "nvidia", true, true},
	{"A100 80GB PCIe", 81920, 80, "nvidia", true, true},
	{"A100-PCIE-40GB", 40960, 80, "nvidia", true, true},
	{"A800-SXM4-80GB", 81920, 80, "nvidia", true, true},
	{"A800 80GB PCIe", 81920, 80, "nvidia", true, true},
	{"A30", 24576, 80, "nvidia", true, true},
	{"A40", 46068, 86, "nvidia", true, true},
	{"A16", 15356, 86, "nvidia", true, false},
	{"A10G", 23028, 86, "nvidia", true, false},
	{"A10", 23028, 86, "nvidia", true, false},
	{"A2", 15356, 86, "nvidia", true, false},
	{"RTX A6000", 49140, 86, "nvidiartx", false, true},
	{"RTX A5500", 24564, 86, "nvidiartx", false, true},
	{"RTX A5000", 24564, 86, "nvidiartx", false, true},
	{"RTX A4500", 20470, 86, "nvidiartx", false, true},
	{"RTX A4000", 16376, 86, "nvidiartx", false, false},
	{"RTX A2000 12GB", 12282, 86, "nvidiartx", false, false},
	{"RTX A2000", 6138, 86, "nvidiartx", false, false},
	{"GeForce RTX 3090 Ti", 24564, 86, "geforce", false, true},
	{"GeForce RTX 3090", 24576, 86, "geforce", false, true},
	{"GeForce RTX 3080 Ti", 12288, 86, "geforce", false, false},
	{"GeForce RTX 3080", 10240, 86, "geforce", false, false},
	{"GeForce RTX 3070 Ti", 8192, 86, "geforce", false, false},
	{"GeForce RTX 3070", 8192, 86, "geforce", false, false},
	{"GeForce RTX 3060 Ti", 8192, 86, "geforce", false, false},
	{"GeForce RTX 3060", 8192, 86, "geforce", false, false},
	/* Turing */
	{"Tesla T4", 15360, 75, "tesla", true, false},
	{"T4", 15360, 75, "tesla", true, false},
	{"Quadro RTX 8000", 46080, 75, "quadrortx", false, true},
	{"Quadro RTX 6000", 23040, 75, "quadrortx", false, true},
	{"Quadro RTX 5000", 16384, 75, "quadrortx", false, true},
	{"Quadro RTX 4000", 8192, 75, "quadrortx", false, false},
	{"TITAN RTX", 24576, 75, "titan", false, true},
	{"GeForce RTX 2080 Ti", 11264, 75, "geforce", false, true},
	{"GeForce RTX 2080 SUPER", 8192, 75, "geforce", false, true},
	{"GeForce RTX 2080", 8192, 75, "geforce", false, true},
	{"GeForce RTX 2070 SUPER", 8192, 75, "geforce", false, true},
	{"GeForce RTX 2070", 8192, 75, "geforce", false, false},
	{"GeForce RTX 2060", 6144, 75, "geforce", false, false},
	{"GeForce GTX 1660 Ti", 6144, 75, "geforce", false, false},
	/* Volta, Pascal, Maxwell, Kepler */
	{"Tesla V100-SXM2-32GB", 32768, 70, "tesla", true, true},
	{"Tesla V100-SXM2-16GB", 16384, 70, "tesla", true, true},
	{"Tesla V100-SXM3-32GB", 32768, 70, "tesla", true, true},
	{"Tesla V100-PCIE-32GB", 32768, 70, "tesla", true, false},
	{"Tesla V100-PCIE-16GB", 16384, 70, "tesla", true, false},
	{"Tesla V100S-PCIE-32GB", 32768, 70, "tesla", true, false},
	{"TITAN V", 12288, 70, "titan", false, false},
	{"Tesla P100-SXM2-16GB", 16384, 60, "tesla", true, true},
	{"Tesla P100-PCIE-16GB", 16384, 60, "tesla", true, false},
	{"Tesla P100-PCIE-12GB", 12288, 60, "tesla", true, false},
	{"Tesla P40", 23040, 61, "tesla", true, false},
	{"Tesla P4", 7680, 61, "tesla", true, false},
	{"TITAN Xp", 12288, 61, "titan", false, false},
	{"GeForce GTX 1080 Ti", 11264, 61, "geforce", false, false},
	{"GeForce GTX 1080", 8192, 61, "geforce", false, false},
	{"GeForce GTX 1070", 8192, 61, "geforce", false, false},
	{"GeForce GTX 1060 6GB", 6144, 61, "geforce", false, false},
	{"Tesla M40 24GB", 24576, 52, "tesla", true, false},
	{"Tesla M40", 12288, 52, "tesla", true, false},
	{"Tesla K80", 11441, 37, "tesla", true, false},
};

const struct gpu_model *gpu_model_find(const char *name)
{
	static const char maker[] = "NVIDIA ";

	if (str_starts(name, maker))
		name += strlen(maker);
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (str_eq(models[i].name, name))
			return &models[i];
	return NULL;
}

static const struct {
	uint32_t branch; /* the first that has it */
	const char *cuda;
} served[] = {
	{384, "9.0"},
	{390, "9.1"},
	{396, "9.2"},
	{410, "10.0"},
	{418, "10.1"},
	{440, "10.2"},
	{450, "11.0"},
	{455, "11.1"},
	{460, "11.2"},
	{465, "11.3"},
	{470, "11.4"},
	{495, "11.5"},
	{510, "11.6"},
	{515, "11.7"},
	{520, "11.8"},
	{525, "12.0"},
	{530, "12.1"},
	{535, "12.2"},
	{545, "12.3"},
	{550, "12.4"},
	{555, "12.5"},
	{560, "12.6"},
	{565, "12.7"},
	{570, "12.8"},
	{575, "12.9"},
	{580, "13.0"},
	{590, "13.1"},
	{595, "13.2"},
};

const char *gpu_model_cuda(uint32_t branch, bool *newer)
{
	enum { N = sizeof(served) / sizeof(served[0]) };
	const char *cuda = NULL;

	for (size_t i = 0; i < N && branch >= served[i].branch; i++)
		cuda = served[i].cuda;
	*newer = branch >= served[N - 1].branch + 5;
	return cuda;
}
